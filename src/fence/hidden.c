/* What a command has no business with: the keys of the user, and what is nacre's. */
#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "fence/fence_plan.h"

/* Below a home directory. */
static const char *const secret_places[] = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/doctl",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/gnome-keyring",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".copilot",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".mysql_history",
    ".local/share/fish/fish_history",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/sops",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".bundle/config",
    ".s3cfg",
    ".boto",
    ".terraformrc",
    ".fly",
    ".config/heroku",
};

/* What root may read and no one else: it has no part in what commands of a workspace do. */
static const char *const secrets_of_root[] = {
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
};

/* What of these is no secret, and needed. */
static const char *const shown_places[] = {".ssh/known_hosts", ".ssh/config",
                                           ".docker/cli-plugins"};

const char *fence_user_home(void)
{
    const char *home = getenv("HOME");
    return home && home[0] == '/' && home[1] ? home : "";
}

/* Only what is there can be hidden; what a link leads to is hidden, too. */
static int add_below(struct fence_layout *l, enum fence_kind kind, const char *top,
                     const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", top, name);
    if (n < 0 || (size_t)n >= sizeof path || !realpath(path, real))
        return 0;
    return layout_add(l, kind, real, NULL);
}

/* What is not there yet may come, into one of these two as a rule. */
static int note_home(struct fence_layout *l, const char *home)
{
    int r = add_below(l, FENCE_LISTED, home, ".");
    return r < 0 ? r : add_below(l, FENCE_LISTED, home, ".config");
}

/* It may come: into which directory, that is to be listed. */
static int note_missing(struct fence_layout *l, const char *home, const char *name)
{
    char path[PATH_MAX];
    size_t top = strlen(home);
    int n = snprintf(path, sizeof path, "%s/%s", home, name);
    while (n > 0 && (size_t)n < sizeof path && access(path, F_OK) < 0) {
        char *slash = strrchr(path, '/');
        if (slash <= path + top)
            return 0; /* the home is listed */
        *slash = '\0';
    }
    return n > 0 && (size_t)n < sizeof path ? add_below(l, FENCE_LISTED, path, ".") : 0;
}

static int hide_secrets_of(struct fence_layout *l, const char *home)
{
    int r = note_home(l, home);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(secret_places); i++) {
        size_t before = l->count;
        r = add_below(l, FENCE_HIDE, home, secret_places[i]);
        if (r == 0 && l->count == before)
            r = note_missing(l, home, secret_places[i]);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown_places); i++)
        r = add_below(l, FENCE_SHOW, home, shown_places[i]);
    return r;
}

/* Root could read those of everybody. */
static int hide_secrets_of_all(struct fence_layout *l)
{
    char path[PATH_MAX];
    DIR *homes = opendir("/home");
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(secrets_of_root); i++)
        r = add_below(l, FENCE_HIDE, "", secrets_of_root[i] + 1);
    for (struct dirent *entry; r == 0 && homes && (entry = readdir(homes));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/home/%s", entry->d_name);
        r = hide_secrets_of(l, path);
    }
    if (homes)
        closedir(homes);
    return r;
}

static int hide_named(const struct fence_wish *wish, struct fence_layout *l)
{
    char path[4096];
    int r = 0;
    for (const char *const *name = wish->hide; r == 0 && name && *name; name++) {
        int e = fence_resolve(wish, *name, path);
        if (e == 0)
            r = layout_add(l, FENCE_HIDE, path, NULL);
        else if (e == -ENOENT && fence_name(wish, *name, path) == 0)
            r = layout_add(l, FENCE_LISTED, path, NULL); /* it may come */
    }
    return r;
}

/* Names of hosts are looked up by what a file says that often lies where only the system's services
 * have theirs. */
static int show_resolver(struct fence_layout *l)
{
    char real[PATH_MAX];
    if (!realpath("/etc/resolv.conf", real) || !path_is_below(real, "/run"))
        return 0;
    return layout_add(l, FENCE_SHOW, real, NULL);
}

static int add_private(const struct fence_wish *wish, struct fence_layout *l, const char *path,
                       const char *name)
{
    char source[PATH_MAX];
    struct stat st;
    int n = snprintf(source, sizeof source, "%s/%s", wish->private_dir, name);
    if (n < 0 || (size_t)n >= sizeof source)
        return -ENAMETOOLONG;
    /* One that is a link leads to another of them. */
    bool apart =
        strcmp(path, FENCE_RUN_INSIDE) == 0 || (lstat(path, &st) == 0 && S_ISDIR(st.st_mode));
    return apart ? layout_add(l, FENCE_PRIVATE, path, source) : 0;
}

/* Where commands run is to be seen, also if it lies where something private does; what is hidden in
 * it stays so. */
static int show_below_private(const struct fence_wish *wish, struct fence_layout *l)
{
    char path[4096];
    if (fence_resolve(wish, wish->workspace, path) < 0 || layout_covers(l, FENCE_WRITE, path) ||
        !layout_covers(l, FENCE_PRIVATE, path))
        return 0;
    return layout_add(l, FENCE_PROTECT, path, NULL);
}

static int add_system(const struct fence_wish *wish, struct fence_layout *l)
{
    int r = layout_add(l, FENCE_DEVICES, "/dev", NULL);
    if (r == 0)
        r = layout_add(l, FENCE_MEMORY, "/run", NULL);
    if (r == 0)
        r = add_private(wish, l, FENCE_RUN_INSIDE, FENCE_RUN);
    if (r == 0)
        r = show_resolver(l);
    if (r < 0)
        return r;
    if (!wish->private_tmp) {
        r = add_below(l, FENCE_WRITE, "/", "tmp");
        return r < 0 ? r : add_below(l, FENCE_WRITE, "/var", "tmp");
    }
    r = add_private(wish, l, "/tmp", FENCE_TMP);
    return r < 0 ? r : add_private(wish, l, "/var/tmp", FENCE_VAR_TMP);
}

int hidden_add(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err)
{
    char home[PATH_MAX];
    int r = add_system(wish, l);
    if (r == 0 && *fence_user_home())
        r = hide_secrets_of(l, fence_user_home());
    if (r == 0 && geteuid() == 0)
        r = hide_secrets_of_all(l);
    if (r == 0)
        r = hide_named(wish, l);
    if (r == 0)
        r = layout_add(l, FENCE_HIDE, realpath(wish->home, home) ? home : wish->home, NULL);
    if (r == 0)
        r = show_below_private(wish, l);
    return r < 0 ? err_sys(err, r == -ENOMEM ? NACRE_ENOMEM : NACRE_EINVAL, -r, "sandbox",
                           "cannot say what the sandbox hides")
                 : 0;
}

void hidden_find_canary(const struct fence_layout *l, char ret_path[4096])
{
    const char *const places[] = {fence_user_home(), "/usr", "/etc", "/opt"};
    ret_path[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places) && !ret_path[0]; i++)
        if (places[i][0] && access(places[i], W_OK) == 0 && realpath(places[i], ret_path) &&
            (layout_covers(l, FENCE_WRITE, ret_path) || layout_covers(l, FENCE_PRIVATE, ret_path) ||
             layout_covers(l, FENCE_MEMORY, ret_path) || layout_covers(l, FENCE_HIDE, ret_path) ||
             layout_covers(l, FENCE_DEVICES, ret_path)))
            ret_path[0] = '\0';
}
