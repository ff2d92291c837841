/* config -- a training configuration: the struct behind config_keys.def. */
#ifndef CD_CONFIG_H
#define CD_CONFIG_H
#include <stdbool.h>

#include "dataset/split/split.h"
#include "features/device/device.h"
#include "learner/fit/fit.h"
#include "learner/model/model.h"

typedef int64_t cd_cfg_INT;
typedef double cd_cfg_REAL;
typedef bool cd_cfg_BOOL;
typedef int cd_cfg_ENUM;
typedef const char *cd_cfg_TEXT;
typedef cd_texts cd_cfg_LIST;

enum {
    CD_N_CONFIG_KEY = 1 /* base */
#define X(section, name, type, def, range, help) +1
#include "learner/config/config_keys.def"
};

typedef struct cd_config {
    /* of the file, while it is read; where one is set before a file is loaded, it is that file's */
    cd_cfg_TEXT base;
#define X(section, name, type, def, range, help) cd_cfg_##type section##_##name;
#include "learner/config/config_keys.def"
    const char *path; /* of the file read last; NULL: none */
    /* of cd_config_keys: by the file itself, not its base, or by an assignment */
    bool given[CD_N_CONFIG_KEY];
    cd_buf notes; /* of cd_config_check: what is no mistake and does nothing, one line each */
    cd_arena arena;
    cd_diag diag; /* every error so far, one line each */
} cd_config;

/* The table; *n its length. */
const cd_conf_key *cd_config_keys(size_t *n);
/* Defaults; free with cd_config_free also after an error. */
cdmpp_status cd_config_init(cd_config *c, cdmpp_err *err);
/* A file over it, its base (key "base") below; data.files become paths that exist where there are
 * such. Errors: EIO (also: no such base), ESCHEMA (bases without end) and those of cd_conf_read. */
cdmpp_status cd_config_load(cd_config *c, const char *path, cdmpp_err *err);
/* The same with n assignments over it, "base=FILE" below all; path "": no file. */
cdmpp_status cd_config_read(cd_config *c, const char *path, const char *const *set, size_t n,
                            cdmpp_err *err);
cdmpp_status cd_config_set(cd_config *c, const char *assignment, cdmpp_err *err);
/* What one key cannot know: fractions that leave nothing to train (ESCHEMA), data.files that are
 * missing, all of them, with data.source (ENODATA). Files that are named twice are taken away;
 * c->notes says so, and which keys have no effect. */
cdmpp_status cd_config_check(cd_config *c, const char *path, cdmpp_err *err);
/* Path `p` that `file` names: p itself where it exists or is absolute, else from the
 * folder of `file` if it exists there, else p. NULL: out of memory. */
const char *cd_config_beside(cd_arena *a, const char *file, const char *p);
/* unused_keys -- the keys that somebody gave and that nothing of this training reads, as one line
 * with the reasons; nothing where there are none. Keys of a base are not told: it is made for more
 * than one training. */
void cd_config_unused(const cd_config *c, cd_buf *out);
void cd_config_print(cd_buf *out, const cd_config *c);
/* What a result depends on: without train.folder, and without train.memory where the data were in
 * memory all the same. */
void cd_config_print_identity(cd_buf *out, const cd_config *c, bool on_disk);
void cd_config_json(cd_buf *out, const cd_config *c);
void cd_config_free(cd_config *c);

/* heldout -- which tasks a model has seen while it was trained.
 *
 *   model's header: configuration, digest of its split ─┐
 *   its data set ───────────────────────────────────────┴─ the split again ─> tasks of training and
 *     validation
 *
 * (1) The data set is the one that the configuration names, or that the caller names in its place.
 *     A split that does not have the digest of the header is refused: it would tell of other
 *     programs.
 * (2) A task is seen when any of its programs is in the training or the validation part (which
 *     stops the training and weighs the members), or was used without its latency; on any device.
 *     Tasks that the set lacks are not seen.
 * Read-only once made. */

typedef struct cd_heldout cd_heldout;

/* header: cd_model_header. data (n_data) in place of the header's files; n_data 0: those. Errors:
 * ESCHEMA (no configuration in the header), EMODEL (the split is another one), ENODATA (a file is
 * missing; key data.files), those of reading. */
cdmpp_status cd_heldout_new(const char *header, const char *const *data, size_t n_data,
                            CD_GIVE cd_heldout **out, cdmpp_err *err);
void cd_heldout_free(CD_TAKE cd_heldout *h); /* NULL is fine */
bool cd_heldout_seen(const cd_heldout *h, const char *workload_key);
/* "task, seed 2", for what is printed. */
CD_KEEP const char *cd_heldout_split(const cd_heldout *h);

/* train.facts: what trees make of facts, or auto, which a training turns into prior or none. */
enum { CD_CONFIG_FACTS_AUTO = CD_FACTS_USE_PRIOR + 1 };
#define CD_CONFIG_FACTS CD_FACTS_USES "|auto"

/* member_plan -- what a configuration wants trained: kinds of members, and what they need. */

typedef struct cd_member_plan {
    size_t n_kind;
    cd_member_kind kind[CD_N_MEMBER_KIND];
    bool leaves;   /* a kind reads leaves */
    bool steps;    /* a kind reads steps */
    bool analytic; /* a kind reads facts of loop nests and analytic times */
    bool facts;    /* it does, or the filter reads facts */
    /* facts are read where there are some: train.facts auto, and no filter asks for them */
    bool wish;
    bool trees;   /* a kind is of trees */
    bool devices; /* a network has a device branch */
} cd_member_plan;

/* Of model.members, with what model.order needs of the data. Errors: ESCHEMA (an unknown kind, one
 * twice, none; with the key). */
cdmpp_status cd_member_plan_of(const cd_config *c, cd_member_plan *out, cdmpp_err *err);
/* How the members of model.order are trained: a configuration whose model.members they are, which
 * borrows from c. Losses know the order inside a task alone, and there is no prior, which is of
 * seconds. */
cd_config cd_config_of_order(const cd_config *c);

/* net_options -- keys net.* and fit.* of a configuration as descriptions of networks. */

/* `w_dev`: width of a device vector. The result borrows from c. */
cd_fit_spec cd_net_options_fit(const cd_config *c, cd_member_kind kind, size_t w_dev);
/* What contradicts itself whatever the data (a loss that does not parse, heads that do
 * not divide the width): added to c->diag. */
void cd_net_options_check(cd_config *c, const char *path, cdmpp_err *err);

/* select_programs -- which programs of a data set a training uses, and for what part.
 *
 *   data.devices -> asked -> filter.* -> keep -> split.* -> train, validation, test
 */

/* keep (d->n), the caller's; `pool` may be NULL; *split to be freed. Errors: ESCHEMA (a name that
 * the data set does not have, with the key), ERANGE, ENOMEM. */
cdmpp_status cd_select_programs(const cd_config *c, const cd_dataset *d, cd_threads *pool,
                                uint8_t *keep, cd_filter_count *count, CD_GIVE cd_split **split,
                                cdmpp_err *err);
/* What contradicts itself whatever the data: added to c->diag. */
void cd_select_programs_check(cd_config *c, const char *path, cdmpp_err *err);
#endif
