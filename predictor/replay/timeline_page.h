/* netpage -- parts of pages that draw replays of networks: style, script of the timeline, JSON within a page.
 *
 *   head, style | body | data as JSON | numbers, the page's own script, replay, lanes, the page's own script
 *
 *   (1) a page is one file that asks for nothing from outside;
 *   (2) data: {"cases": [{..., "lanes", "links", "copies", "ops": {"name", "start", "end", "lane", "worker", "type", "critical", "after"},
 *       "types"}], ...}; times of operators are whole nanoseconds;
 *   (3) the page's own script has `now` (the case that is shown), about(k): a note on operator k as HTML, and calls prepare(c), fit().
 * No state, any thread. */
#ifndef CD_TIMELINE_PAGE_H
#define CD_TIMELINE_PAGE_H
#include "base/core/core.h"
#include "predictor/replay/replay.h"

void cd_timeline_page_text(cd_buf *b, const char *s);   /* a JSON text; NULL: "" */
void cd_timeline_page_ns(cd_buf *b, double s);          /* whole nanoseconds, or null */
void cd_timeline_page_real(cd_buf *b, const char *key, double v); /* ,"key":v */
/* ,"lanes":[..],"links":[..],"copies":[..] of a replay. */
void cd_timeline_page_queues(cd_buf *b, const cd_replay_net *n, const cd_replay *r);

typedef struct cd_timeline_page_parts {
    const char *title;
    const char *const *body, *const *script, *const *drawing; /* the page's own pieces; NULL ends */
    const cd_buf *data;
} cd_timeline_page_parts;
/* Errors: EIO, ENOMEM. */
cdmpp_status cd_timeline_page_write(const char *path, const cd_timeline_page_parts *p, cdmpp_err *err);
#endif
