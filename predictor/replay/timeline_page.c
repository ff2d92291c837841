/* JSON within a page, and the page put together from its own pieces and the shared ones of web/. */
#include "predictor/replay/replay.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/replay/web/lanes.js.h"
#include "predictor/replay/web/numbers.js.h"
#include "predictor/replay/web/simulate.js.h"
#include "predictor/replay/web/timeline.css.h"

void cd_timeline_page_text(cd_buf *b, const char *s) { cd_escape_script(b, cd_str_of(s)); }

void cd_timeline_page_ns(cd_buf *b, double s) {
    if (s >= 0 && s < 4e9) cd_buf_put_int(b, (int64_t)llround(s * 1e9));
    else cd_buf_puts(b, "null");
}

void cd_timeline_page_real(cd_buf *b, const char *key, double v) {
    cd_buf_putf(b, ",\"%s\":", key);
    cd_buf_put_json_real(b, v);
}

/* Devices as lanes, links, and copies as lists [operator, link, start, end]. */
void cd_timeline_page_queues(cd_buf *b, const cd_replay_net *n, const cd_replay *r) {
    cd_buf_puts(b, ",\"lanes\":[");
    for (uint32_t k = 0; k < n->n_device; k++) {
        cd_buf_puts(b, k ? ",{\"name\":" : "{\"name\":");
        cd_timeline_page_text(b, n->device[k].name);
        cd_buf_putf(b, ",\"workers\":%u,\"gap\":%.9g,\"issue\":%.9g}", n->device[k].workers,
                    n->device[k].gap_s, n->device[k].issue_s);
    }
    cd_buf_puts(b, "],\"links\":[");
    for (uint32_t k = 0; k < n->n_link; k++) {
        cd_buf name = {0};
        cd_buf_putf(&name, "%s > %s", n->device[n->link[k].from].name,
                    n->device[n->link[k].to].name);
        cd_buf_puts(b, k ? ",{\"name\":" : "{\"name\":");
        cd_timeline_page_text(b, name.p);
        cd_buf_putf(b, ",\"to\":%u}", n->link[k].to);
        cd_buf_free(&name);
    }
    cd_buf_puts(b, "],\"copies\":[");
    for (uint32_t k = 0; k < r->n_copy; k++) {
        const cd_replay_copy *y = &r->copy[k];
        cd_buf_putf(b, "%s[%u,%u,", k ? "," : "", y->op, y->link);
        cd_timeline_page_ns(b, y->start_s);
        cd_buf_puts(b, ",");
        cd_timeline_page_ns(b, y->end_s);
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]");
}

static void put_pieces(const char *const *piece, cd_buf *b) {
    for (; *piece; piece++) cd_buf_puts(b, *piece);
}

/* The order of scripts matters: numbers and formats, the page's own data and headline, then
 * simulation and drawing, which use both. */
cdmpp_status cd_timeline_page_write(const char *path, const cd_timeline_page_parts *p,
                                    cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                    "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                    "<title>");
    cd_escape_xml(&b, cd_str_of(p->title));
    cd_buf_puts(&b, "</title>\n<style>\n");
    cd_buf_puts(&b, timeline_css);
    cd_buf_puts(&b, "</style></head><body>\n");
    put_pieces(p->body, &b);
    cd_buf_puts(&b, "<script type=\"application/json\" id=\"data\">");
    cd_buf_put(&b, p->data->p ? p->data->p : "", p->data->n);
    cd_buf_puts(&b, "</script>\n<script>\n");
    cd_buf_puts(&b, numbers_js);
    put_pieces(p->script, &b);
    cd_buf_puts(&b, simulate_js);
    cd_buf_puts(&b, lanes_js);
    put_pieces(p->drawing, &b);
    cd_buf_puts(&b, "</script>\n</body></html>\n");
    cdmpp_status st = CDMPP_OK;
    if (b.oom || p->data->oom) st = CD_FAIL(err, ENOMEM, "a page of %zu bytes", b.n);
    else st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}
