/* network_cost -- what a network costs over its operators measured alone: a fit for each device, in
 * a file.
 *
 *   measured networks ─ cd_network_cost_fit ─> one entry ─> network-costs.yaml ─
 *                                                           cd_network_cost_read ─> law of a device
 *
 *   in the network = lift * alone + call_s + weights / refill  of each task; lift 1 in networks
 *                                                              that move little, no refill in those
 *                                                              of few weights
 *
 *   (1) the file is a list; an entry names its devices, and a device has one entry;
 *   (2) a device without an entry gets no law, or one that was lent to it: how far off that may be
 *       is what networks of other devices add (cd_network_cost_spread);
 *   (3) records are of one program in a loop, its data warm, the fastest of a task kept. In a
 *       network the caches hold what others used, a call goes through the executor, and nobody
 *       picks the lucky run. That is what an entry is about.
 * A list is read-only once read. Seconds, bytes. */
#ifndef CD_NETWORK_COST_H
#define CD_NETWORK_COST_H
#include "base/text/text.h"
#include "features/device/device.h"

#define CD_NETWORK_COST_FILE "network-costs.yaml"

typedef struct cd_network_cost_fit {
    cd_texts devices; /* that the fit is of */
    /* devices that are like them, and whose networks nobody measured: they take the fit */
    cd_texts lent_to;
    /* of networks that move more than `lift_from` times the largest shared cache in a pass */
    double lift;
    double lift_from; /* 0: of all */
    double call_s;    /* of each task */
    /* at which weights come that were in a nearer cache when it was measured alone; 0: none do */
    double refill_bytes_per_s;
    /* these are weights of less than so many times the core's last own cache; larger ones come from
     * the memory alone, too */
    double refill_to;
    /* and of networks whose weights take more than so many times the largest shared cache: it keeps
     * the others'. 0: of all */
    double refill_from;
    int64_t networks; /* that it was fitted on */
    /* standard deviation of ln(measured / fitted), each network by the fit of the others */
    double spread;
    /* root of the mean square of ln(measured / sum of operators alone): what the sum alone would
     * miss. 0: not told, see cd_network_cost_spread */
    double adds;
    const char *source; /* which data, for people */
    /* cdmpp-tune calibrate measured it on this machine: of few networks. In no file */
    bool here;
} cd_network_cost_fit;

typedef struct cd_network_cost {
    cd_arena arena;
    cd_network_cost_fit *v; /* (n) */
    size_t n;
} cd_network_cost;

/* Errors, every mistake with its line in `diag`: EIO, EPARSE, ESCHEMA (a device twice too), ERANGE,
 * ENOMEM. */
cdmpp_status cd_network_cost_load(const char *path, cd_diag *diag, CD_GIVE cd_network_cost **out,
                                  cdmpp_err *err);
/* The same from text in memory; `path` is for messages. */
cdmpp_status cd_network_cost_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                  CD_GIVE cd_network_cost **out, cdmpp_err *err);
void cd_network_cost_free(CD_TAKE cd_network_cost *l); /* NULL is fine */
const char *cd_network_cost_named(void); /* $CDMPP_NETWORK_COSTS; NULL: not set, or empty */
/* The list at that path; *out NULL: there is none. Errors: those of cd_network_cost_load. */
cdmpp_status cd_network_cost_usual(cd_diag *diag, CD_GIVE cd_network_cost **out, cdmpp_err *err);
/* A copy of `f` behind the entries of *l; *l NULL: a list of it alone. Errors: ENOMEM; *l stays as
 * it was. */
cdmpp_status cd_network_cost_add(cd_network_cost **l, const cd_network_cost_fit *f, cdmpp_err *err);
/* was it measured on this device? f NULL: no */
bool cd_network_cost_names(const cd_network_cost_fit *f, const char *name);
/* The same in front of them: it is found first, and devices that share an entry with its own, or
 * are lent it, keep theirs. */
cdmpp_status cd_network_cost_add_first(cd_network_cost **l, const cd_network_cost_fit *f,
                                       cdmpp_err *err);
/* The entry of a device, else of its description, which has its proper name or is of who stands for
 * it; where there is none, one that is lent to it. d NULL: there is no description. l NULL:
 * NULL. */
CD_KEEP const cd_network_cost_fit *cd_network_cost_find(const cd_network_cost *l, const char *name,
                                                        const cd_device *d);
/* The name to find the fit of a device by: that of its stand-in where it has none. stands NULL: it
 * has no stand-in of its kind. */
const char *cd_network_cost_whose(const cd_network_cost *l, const char *name, const cd_device *d,
                                  const char *stands);
/* Of a fit that was found so: the device that it was measured on, where that is neither of both.
 * NULL: it is one of them, or f NULL. */
CD_KEEP const char *cd_network_cost_lender(const cd_network_cost_fit *f, const char *name,
                                           const cd_device *d);
/* Bytes of the largest cache that the cores share; NaN: unknown, or NULL. */
double cd_network_cost_cache(const cd_device *d);
/* Of a device whose networks nobody measured, standard deviation of ln(true / sum of operators) of
 * a network, as if normal at a level of 0.9. From the entries: root of the mean of their adds^2,
 * wider by Student's t, because they are few; not less than the largest of them. An entry that does
 * not tell `adds` counts with (ln lift)^2 + spread^2. NaN: there is no entry. */
double cd_network_cost_spread(const cd_network_cost *l);
/* An entry as the file has it. */
void cd_network_cost_put(cd_buf *b, const cd_network_cost_fit *f);
/* `f` in the file, in the place of an entry of the same device; a file that is not there begins.
 * Errors: those of cd_network_cost_load, EIO. */
cdmpp_status cd_network_cost_save(const char *path, const cd_network_cost_fit *f, cd_diag *diag,
                                  cdmpp_err *err);

/* ---- fitting ---- */
/* A core keeps weights of some times its own last cache near, by what it gets of the shared one. A
 * fit takes one of these limits. */
enum { CD_NETWORK_COST_LIMITS = 4 };
extern const double cd_network_cost_limit[CD_NETWORK_COST_LIMITS];

typedef struct cd_network_cost_row {
    double measured_s;     /* of a pass */
    double alone_s, calls; /* of its tasks: sum of times alone; how many runs */
    /* weights that were near when they were measured alone, by limit */
    double refill_bytes[CD_NETWORK_COST_LIMITS];
    /* what memory takes to bring weights that the largest shared cache held when they were measured
     * alone, and does not hold in the network, and */
    double fetch_s;
    /* by which law (refill_bytes_per_s, refill_to): of the description of the device, nothing is
     * fitted. Rate 0: it does not say enough */
    double fetch_bytes_per_s, fetch_to;
    double rest_s; /* of all else, in the network already */
    /* bytes that a pass moves over the largest shared cache; NaN: unknown, then all are lifted or
     * none */
    double moved_caches;
} cd_network_cost_row;
enum { CD_NETWORK_COST_FEWEST = 4 };
/* Of the largest shared cache, what keeps weights from one pass to the next: activations take the
 * rest. */
#define CD_NETWORK_COST_KEEPS 0.75
/* Least squares of relative errors. Which of lift, call_s and refill there are (fitted, or what the
 * description says), from where networks are lifted, and the limit of refills, is what leaves out
 * each network in turn with the least error; what has more to choose must be better by a fifth.
 * Fills all of *out but devices and source. Errors: ERANGE (fewer than CD_NETWORK_COST_FEWEST, a
 * time that is none, nothing that fits), ENOMEM. */
cdmpp_status cd_network_cost_fit_rows(const cd_network_cost_row *row, size_t n,
                                      cd_network_cost_fit *out, cdmpp_err *err);
#endif
