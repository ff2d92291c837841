/* Prints measured pairs: CSV for later use, JSON for programs, a table for people. */
#include <string.h>

#include "base/text/text.h"
#include "profiler/host/host.h"
#include "profiler/records/record_corun.h"

static const char *sharing_of(const cd_record_corun_row *r) {
    return r->sharing == CD_CORUN_DISJOINT ? "disjoint" : "shared";
}

/* A field of CSV and its comma, quoted: keys hold quotes and commas. */
static void put_quoted(cd_buf *b, cd_str t) {
    cd_csv_fields_put(b, t.p, t.n);
    cd_buf_puts(b, ",");
}

/* A pair that failed has empty fields for its times, and an error number. */
void cd_record_corun_csv(cd_buf *b, const cd_record_corun *c) {
    cd_buf_puts(b, "first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_"
                   "corun_s,first_slowdown,second_slowdown,spread,"
                   "first_flop,second_flop,first_bytes,second_bytes,error_no\n");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        put_quoted(b, c->best[r->first].key);
        put_quoted(b, c->best[r->second].key);
        cd_buf_putf(b, "%s,%d,", sharing_of(r), c->threads);
        if (p->error_no) cd_buf_puts(b, ",,,,,,,");
        else
            cd_buf_putf(b, "%.9g,%.9g,%.9g,%.9g,%.6g,%.6g,%.4g,", p->solo_s[0], p->solo_s[1],
                        p->corun_s[0], p->corun_s[1], p->slowdown[0], p->slowdown[1], p->spread);
        cd_buf_putf(b, "%.12g,%.12g,%lld,%lld,%d\n", c->job[r->first].flop, c->job[r->second].flop,
                    (long long)cd_corun_bytes(&c->job[r->first].code),
                    (long long)cd_corun_bytes(&c->job[r->second].code), p->error_no);
    }
}

static void put_program(cd_buf *b, const cd_record_corun *c, size_t i) {
    const cd_record_best *x = &c->best[i];
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, x->key.p, x->key.n);
    cd_buf_puts(b, ",\"file\":");
    cd_buf_put_json_str(b, x->path, strlen(x->path));
    cd_buf_putf(b, ",\"line\":%ld,\"flop\":%.12g,\"bytes\":%lld}", x->number, c->job[i].flop,
                (long long)cd_corun_bytes(&c->job[i].code));
}

/* Pairs name programs by their position, so that long workload keys stand there once. */
void cd_record_corun_json(cd_buf *b, const cd_record_corun *c) {
    cd_buf_putf(b, "{\"processors\":%d,\"threads\":%d,\"programs\":[", cd_affinity_count(),
                c->threads);
    for (size_t i = 0; i < c->n; i++) {
        if (i) cd_buf_puts(b, ",");
        put_program(b, c, i);
    }
    cd_buf_puts(b, "],\"pairs\":[");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%s{\"first\":%zu,\"second\":%zu,\"sharing\":\"%s\",\"error_no\":%d",
                    i ? "," : "", r->first, r->second, sharing_of(r), p->error_no);
        if (!p->error_no)
            cd_buf_putf(b,
                        ",\"solo_s\":[%.9g,%.9g],\"corun_s\":[%.9g,%.9g],\"slowdown\":[%.6g,%.6g],"
                        "\"spread\":%.4g",
                        p->solo_s[0], p->solo_s[1], p->corun_s[0], p->corun_s[1], p->slowdown[0],
                        p->slowdown[1], p->spread);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

void cd_record_corun_text(cd_buf *b, const cd_record_corun *c) {
    for (size_t i = 0; i < c->n; i++)
        cd_buf_putf(b, "%3zu  %.*s\n", i, (int)(c->best[i].key.n < 110 ? c->best[i].key.n : 110),
                    c->best[i].key.p);
    cd_buf_puts(
        b, "first second  sharing   alone, ms           together, ms        slowdown     spread\n");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%5zu %6zu  %-8s", r->first, r->second, sharing_of(r));
        if (p->error_no) cd_buf_putf(b, "  error %d\n", p->error_no);
        else /* times in milliseconds, the spread in percent */
            cd_buf_putf(b, "  %9.4f %9.4f  %9.4f %9.4f  %5.2f %5.2f  %5.1f %%\n",
                        p->solo_s[0] * 1e3, p->solo_s[1] * 1e3, p->corun_s[0] * 1e3,
                        p->corun_s[1] * 1e3, p->slowdown[0], p->slowdown[1], 100 * p->spread);
    }
}
