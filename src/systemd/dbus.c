#include "systemd/dbus.h"

#include <errno.h>
#include <string.h>

#include "base/defs.h"

#define VERSION   1
#define NO_ANSWER 1
#define HEAD_SIZE                                                                  \
    12 /* before the fields: order, type, flags, version, size of the body, number \
        */
#define BODY_SIZE_AT 4
#define LONGEST      ((size_t)64 * 1024 * 1024) /* whatever is asked for: sums of sizes stay small */

/* The fields of a header. */
enum header_field {
    FIELD_PATH = 1,
    FIELD_INTERFACE = 2,
    FIELD_MEMBER = 3,
    FIELD_ERROR = 4,
    FIELD_ANSWERS = 5,
    FIELD_DESTINATION = 6,
    FIELD_SIGNATURE = 8,
};

static unsigned char our_order(void)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B';
}

/* -- Writing ---------------------------------------------------------------------------------- */

void message_put_bytes(struct message_writer *w, const void *bytes, size_t size)
{
    w->full = w->full || size > sizeof w->data - w->size;
    if (w->full)
        return;
    memcpy(w->data + w->size, bytes, size);
    w->size += size;
}

void message_align(struct message_writer *w, size_t alignment)
{
    static const unsigned char zeros[8];
    size_t over = (w->size - w->begin) % alignment;
    if (over > 0)
        message_put_bytes(w, zeros, alignment - over);
}

void message_put_u32(struct message_writer *w, uint32_t number)
{
    message_align(w, sizeof number);
    message_put_bytes(w, &number, sizeof number);
}

void message_put_string(struct message_writer *w, const char *string)
{
    size_t length = strlen(string);
    message_put_u32(w, (uint32_t)length);
    message_put_bytes(w, string, length + 1);
}

void message_put_signature(struct message_writer *w, const char *signature)
{
    unsigned char length = (unsigned char)strlen(signature);
    message_put_bytes(w, &length, 1);
    message_put_bytes(w, signature, (size_t)length + 1);
}

static void write_u32_at(struct message_writer *w, size_t at, uint32_t number)
{
    if (!w->full)
        memcpy(w->data + at, &number, sizeof number);
}

/* Its size does not count what aligns the first element. */
static size_t first_element(const struct message_writer *w, size_t array, size_t alignment)
{
    size_t at = array + sizeof(uint32_t) - w->begin;
    return w->begin + (at + alignment - 1) / alignment * alignment;
}

size_t message_begin_array(struct message_writer *w, size_t alignment)
{
    message_put_u32(w, 0);
    size_t array = w->size - sizeof(uint32_t);
    message_align(w, alignment);
    return array;
}

void message_end_array(struct message_writer *w, size_t array, size_t alignment)
{
    write_u32_at(w, array, (uint32_t)(w->size - first_element(w, array, alignment)));
}

static void put_field(struct message_writer *w, enum header_field field, const char *type,
                      const char *value)
{
    unsigned char code = (unsigned char)field;
    if (!value)
        return;
    message_align(w, 8);
    message_put_bytes(w, &code, 1);
    message_put_signature(w, type);
    if (*type == 'g')
        message_put_signature(w, value);
    else
        message_put_string(w, value);
}

void message_begin(struct message_writer *w, uint32_t serial, const struct message_call *call)
{
    unsigned char flags = call->answered ? 0 : NO_ANSWER;
    const unsigned char head[] = {our_order(), MESSAGE_CALL, flags, VERSION};
    w->begin = w->size;
    message_put_bytes(w, head, sizeof head);
    message_put_u32(w, 0);
    message_put_u32(w, serial);
    size_t fields = message_begin_array(w, 8);
    put_field(w, FIELD_PATH, "o", call->path);
    put_field(w, FIELD_INTERFACE, "s", call->interface);
    put_field(w, FIELD_MEMBER, "s", call->member);
    put_field(w, FIELD_DESTINATION, "s", call->destination);
    put_field(w, FIELD_SIGNATURE, "g", call->signature);
    message_end_array(w, fields, 8);
    message_align(w, 8);
    w->body = w->size;
}

void message_end(struct message_writer *w)
{
    write_u32_at(w, w->begin + BODY_SIZE_AT, (uint32_t)(w->size - w->body));
}

/* -- Reading ---------------------------------------------------------------------------------- */

/* The next bytes, aligned; NULL if there are not so many. */
static const unsigned char *take_aligned(struct message_reader *r, size_t size, size_t alignment)
{
    size_t at = (r->at + alignment - 1) / alignment * alignment;
    r->bad = r->bad || at > r->size || size > r->size - at;
    if (r->bad)
        return NULL;
    r->at = at + size;
    return r->data + at;
}

uint32_t message_get_u32(struct message_reader *r)
{
    uint32_t number = 0;
    const unsigned char *bytes = take_aligned(r, sizeof number, sizeof number);
    if (bytes)
        memcpy(&number, bytes, sizeof number);
    return r->swapped ? __builtin_bswap32(number) : number;
}

/* Of that length, and a NUL behind it that is the first. */
static const char *take_chars(struct message_reader *r, size_t length)
{
    r->bad = r->bad || length >= r->size;
    const char *text = (const char *)take_aligned(r, length + 1, 1);
    r->bad = r->bad || strnlen(text, length + 1) != length;
    return r->bad ? "" : text;
}

const char *message_get_string(struct message_reader *r)
{
    return take_chars(r, message_get_u32(r));
}

static const char *get_signature(struct message_reader *r)
{
    const unsigned char *length = take_aligned(r, 1, 1);
    return length ? take_chars(r, *length) : "";
}

/* Of the fields that there are all have one of four types. */
static void read_header_field(struct message_reader *r, struct message *ret)
{
    const unsigned char *code = take_aligned(r, 1, 8);
    const char *type = get_signature(r), *text = "";
    uint32_t number = 0;
    if (strcmp(type, "s") == 0 || strcmp(type, "o") == 0)
        text = message_get_string(r);
    else if (strcmp(type, "g") == 0)
        text = get_signature(r);
    else if (strcmp(type, "u") == 0)
        number = message_get_u32(r);
    else
        r->bad = true;
    if (r->bad)
        return;
    switch (*code) {
    case FIELD_INTERFACE:
        ret->interface = text;
        break;
    case FIELD_MEMBER:
        ret->member = text;
        break;
    case FIELD_ERROR:
        ret->error = text;
        break;
    case FIELD_ANSWERS:
        ret->answers = number;
        break;
    case FIELD_SIGNATURE:
        ret->signature = text;
        break;
    default:
        break;
    }
}

long message_parse(const void *data, size_t size, size_t max, struct message *ret)
{
    struct message_reader r = {.data = data, .size = size, .at = BODY_SIZE_AT};
    const unsigned char *head = data;
    *ret = (struct message){.interface = "", .member = "", .error = "", .signature = ""};
    if (size < HEAD_SIZE + sizeof(uint32_t))
        return 0;
    if ((head[0] != 'l' && head[0] != 'B') || head[3] != VERSION)
        return -EBADMSG;
    r.swapped = head[0] != our_order();
    ret->type = (enum message_type)head[1];
    size_t body = message_get_u32(&r);
    message_get_u32(&r);
    size_t fields = message_get_u32(&r);
    if (body > LONGEST || fields > LONGEST)
        return -EBADMSG;
    size_t body_at = (r.at + fields + 7) / 8 * 8;
    if (body_at + body > max)
        return -EMSGSIZE;
    if (body_at + body > size)
        return 0;
    r.size = r.at + fields;
    while (!r.bad && r.at < r.size)
        read_header_field(&r, ret);
    ret->body = (struct message_reader){
        .data = head + body_at, .size = body, .swapped = r.swapped, .bad = r.bad};
    return r.bad ? -EBADMSG : (long)(body_at + body);
}
