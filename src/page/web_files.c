#include "page/web_files.h"

#include <stdio.h>
#include <string.h>

#include "page/page.h"

/* Nothing but what comes from here is run, shown or asked for, and nobody shows it in a frame. */
#define POLICY                                                                           \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; " \
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "    \
    "frame-ancestors 'none'; require-trusted-types-for 'script'\r\n"

const struct web_file *page_file(struct stretch path)
{
    static const char folder[] = "/app/";
    size_t skip = sizeof folder - 1;
    bool below = path.size > skip && memcmp(path.at, folder, skip) == 0;
    struct stretch name = {path.at + skip, below ? path.size - skip : 0};
    if (!below && path.size != 1)
        return NULL;
    for (const struct web_file *f = web_files; f->path; f++)
        if (strlen(f->path) == name.size && memcmp(f->path, name.at, name.size) == 0)
            return f;
    return NULL;
}

void page_answer_file(struct http_conn *c, const struct web_file *file)
{
    const struct http_request *q = &c->request;
    char fields[1024];
    struct stretch known = http_request_field(q, "If-None-Match");
    bool packed = file->packed && http_list_has(http_request_field(q, "Accept-Encoding"), "gzip");
    const char *data = packed ? file->packed : file->data;
    size_t size = (size_t)((packed ? file->packed_end : file->end) - data);
    snprintf(fields, sizeof fields,
             "Content-Type: %s\r\nETag: %s\r\nVary: Accept-Encoding\r\n%s" POLICY, file->type,
             file->tag, packed ? "Content-Encoding: gzip\r\n" : "");
    if (known.at && known.size == strlen(file->tag) && memcmp(known.at, file->tag, known.size) == 0)
        http_answer(c, 304, fields, NULL, 0);
    else
        http_answer(c, 200, fields, data, size);
}
