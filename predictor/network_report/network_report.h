/* The door of predictor/network_report: estimates of networks as text, JSON, CSV, traces and a
 * page.
 *
 *   cd_network_estimate (run) + options, prices ─> table | JSON | CSV ─> a buffer
 *                                               ─> trace | page       ─> files
 *
 * For cdmpp-replay and for cdmpp_estimate_json() of cdmpp.h. It computes no time of its own; the
 * things that it adds are money and energy. Buffers: out of memory stays in b->oom. No state, any
 * thread. */
#ifndef CD_NETWORK_REPORT_H
#define CD_NETWORK_REPORT_H
#include "predictor/network_estimate/network_estimate.h"

typedef struct cd_network_price {
    double per_hour;      /* of a device; NaN: unknown */
    const char *currency; /* "": unknown */
} cd_network_price;

typedef struct cd_network_prices {
    cd_arena arena;
    cd_network_price *device; /* (n_device) of the estimate */
} cd_network_prices;
/* Reads lines "device,price_per_hour[,currency]"; "#" begins a comment, the first line may name the
 * columns. Other devices' lines are skipped. Errors: EIO, EPARSE, ERANGE, EINVALID (a second price,
 * two currencies), ENOMEM. Free after an error too. */
cdmpp_status cd_network_prices_read(const char *path, const cd_network_estimate *e,
                                    cd_network_prices *out, cdmpp_err *err);
void cd_network_prices_free(cd_network_prices *p); /* zeroed is fine */

/* The watts of devices out of texts "DEVICE=W", into the arena: (n_device) of the estimate, NaN
 * where none names it. Errors: EUSAGE (no such text, no number above 0, a device that is not asked
 * about, a second power of one), ENOMEM. */
cdmpp_status cd_network_powers_read(const char *const *text, size_t n, const cd_network_estimate *e,
                                    cd_arena *a, CD_KEEP const double **out, cdmpp_err *err);

typedef struct cd_network_report {
    const cd_network_estimate *e;
    bool ops;                        /* also each operator */
    bool measured;                   /* also the error against the measured times of the graphs */
    const cd_network_prices *prices; /* NULL: none */
    /* what an item takes at most, by the power below or the data sheet's */
    bool energy;
    const double *power_w; /* (n_device) of cd_network_powers_read; NULL: none is said */
    /* a slower case is not among the cheapest, nor those of least energy; NaN: none */
    double deadline_s;
} cd_network_report;

/* Whose latency it is, one line without its end: "Latency of programs compiled by cdmpp with
 * schedules that cdmpp chose, on one core; not of ONNX Runtime, PyTorch or TensorRT." Nothing where
 * no case has a result. */
void cd_network_report_whose(const cd_network_estimate *e, cd_buf *b);
/* A device as tables show it, with what stands in for it: "zen4", "this CPU (as zen4)", "a100 (as
 * h100)". Returns `out`. */
enum { CD_NETWORK_REPORT_DEVICE = 160 };
const char *cd_network_report_device(const cd_network_estimate_device *d,
                                     char out[CD_NETWORK_REPORT_DEVICE]);
/* The table for people, below that line, with summaries and operators. */
void cd_network_report_text(const cd_network_report *p, cd_buf *b);
/* One JSON object and a line end (docs/reference/replay.md). Of graph files on one device its keys
 * are the networks' names. */
void cd_network_report_json(const cd_network_report *p, cd_buf *b);
/* RFC 4180: a line a case, with `ops` a line an operator. */
void cd_network_report_csv(const cd_network_report *p, cd_buf *b);
/* A trace for Perfetto or chrome://tracing. "t.json" of several cases: "t.resnet-50.v100.4.json",
 * ... Errors: EIO, ENOMEM. */
cdmpp_status cd_network_report_trace(const cd_network_report *p, const char *path, cdmpp_err *err);
/* A page that needs nothing from outside. Errors: EIO, ENOMEM. */
cdmpp_status cd_network_report_html(const cd_network_report *p, const char *path, cdmpp_err *err);
#endif
