#include "ask/question.h"

#include <string.h>

#include "base/defs.h"
#include "view/record_words.h"

/* Indexed by enum question_text. */
static const char *const text_names[QUESTION_TEXTS] = {
    "command", "commands", "cwd", "reason", "description", "wants", "always", "asker",
};

static const char *text_at(const struct question *q, enum question_text which)
{
    return q->texts[which] ? q->texts[which] : "";
}

void question_done(struct question *q)
{
    for (size_t i = 0; i < QUESTION_TEXTS; i++)
        free(q->texts[i]);
    *q = (struct question){0};
}

bool question_shows_same(const struct question *a, const struct question *b)
{
    for (size_t i = 0; i < QUESTION_TEXTS; i++)
        if (strcmp(text_at(a, (enum question_text)i), text_at(b, (enum question_text)i)) != 0)
            return false;
    return true;
}

void question_view(const struct question *q, nacre_id_text *id_text, nacre_id_text *session_text,
                   nacre_question *ret)
{
    *id_text = nacre_id_format(&q->id);
    *session_text = nacre_id_format(&q->session);
    *ret = (nacre_question){
        .number = q->number,
        .command = text_at(q, QUESTION_COMMAND),
        .commands = text_at(q, QUESTION_COMMANDS),
        .cwd = text_at(q, QUESTION_CWD),
        .reason = text_at(q, QUESTION_REASON),
        .description = text_at(q, QUESTION_DESCRIPTION),
        .id = id_text->s,
        .session = session_text->s,
        .asker = text_at(q, QUESTION_ASKER),
        .wants = text_at(q, QUESTION_WANTS),
        .always = text_at(q, QUESTION_ALWAYS),
        .asked_ms = q->asked_ms,
        .within = q->within,
    };
}

json_t *question_json(const struct question *q)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:b}", "id", nacre_id_format(&q->id).s, "session",
                  nacre_id_format(&q->session).s, "number", (json_int_t)q->number, "asked_ms",
                  (json_int_t)q->asked_ms, "within", (int)q->within);
    for (size_t i = 0; json && i < QUESTION_TEXTS; i++) {
        const char *text = text_at(q, (enum question_text)i);
        if (json_object_set_new(json, text_names[i], json_text(text, strlen(text))) < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

bool question_read(const json_t *json, struct question *ret)
{
    const char *id = json_string_value(json_object_get(json, "id"));
    const char *session = json_string_value(json_object_get(json, "session"));
    *ret = (struct question){
        .number = (uint64_t)json_integer_value(json_object_get(json, "number")),
        .asked_ms = json_integer_value(json_object_get(json, "asked_ms")),
        .within = json_is_true(json_object_get(json, "within")),
    };
    if (!id || !session || nacre_id_parse(id, &ret->id) < 0 ||
        nacre_id_parse(session, &ret->session) < 0)
        return false;
    for (size_t i = 0; i < QUESTION_TEXTS; i++) {
        const char *text = json_string_value(json_object_get(json, text_names[i]));
        if (!text || !(ret->texts[i] = strdup(text)))
            return false;
    }
    return true;
}
