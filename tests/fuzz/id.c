/* Arbitrary text as an id, and as a prefix of one in a home with a few shells. */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <nacre/nacre.h>

static char home[64];
static nacre_session *session;

/* Some that begin alike, and one that does not. */
static const char *const shells[] = {
    "00112233445566778899aabbccddeeff", "00112233445566778899aabbccddeef0",
    "0011ffffffffffffffffffffffffffff", "deadbeefdeadbeefdeadbeefdeadbeef"};

static void clean_up(void)
{
    char path[160];
    nacre_close(session, NULL);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        snprintf(path, sizeof path, "%s/runs/%s", home, shells[i]);
        rmdir(path);
    }
    snprintf(path, sizeof path, "%s/runs", home);
    rmdir(path);
    rmdir(home);
}

static void open_home(void)
{
    char path[160];
    nacre_options options = NACRE_OPTIONS_INIT;
    snprintf(home, sizeof home, "/tmp/nacre-fuzz.XXXXXX");
    MUST(mkdtemp(home));
    snprintf(path, sizeof path, "%s/runs", home);
    MUST(mkdir(path, 0700) == 0);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        snprintf(path, sizeof path, "%s/runs/%s", home, shells[i]);
        MUST(mkdir(path, 0700) == 0);
    }
    options.home = home;
    MUST(nacre_open(&options, &session, NULL) == 0);
    atexit(clean_up);
}

static bool is_hex(const char *text)
{
    return strspn(text, "0123456789abcdef") == strlen(text);
}

static int expected(const char *text)
{
    int matches = 0;
    if (strlen(text) < 4 || strlen(text) > 32 || !is_hex(text))
        return NACRE_EINVAL;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        matches += strncmp(shells[i], text, strlen(text)) == 0;
    return matches == 0 ? NACRE_ENOTFOUND : matches == 1 ? NACRE_OK : NACRE_EAMBIGUOUS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    nacre_id id;
    nacre_error err = NACRE_ERROR_INIT;
    if (!session)
        open_home();
    char *text = malloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int r = nacre_id_parse(text, &id);
    MUST((r == NACRE_OK) == (strlen(text) == 32 && is_hex(text)));
    if (r == NACRE_OK)
        MUST(strcmp(nacre_id_format(&id).s, text) == 0);
    r = nacre_find(session, text, &id, &err);
    MUST(r == expected(text));
    if (r == NACRE_OK)
        MUST(strncmp(nacre_id_format(&id).s, text, strlen(text)) == 0);
    else
        MUST(err.code == r && memchr(err.msg, 0, sizeof err.msg) && err.msg[0]);
    free(text);
    return 0;
}
