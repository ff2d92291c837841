/* config -- a training configuration: the struct behind config_keys.def. */
#ifndef CD_CONFIG_H
#define CD_CONFIG_H
#include "base/text/text.h"
#include "dataset/split/split.h"
#include "learner/inputs/inputs.h"
#include "learner/model/model.h"
#include "learner/fit/fit.h"
#include "learner/loss/loss.h"

typedef int64_t cd_cfg_INT;
typedef double cd_cfg_REAL;
typedef bool cd_cfg_BOOL;
typedef int cd_cfg_ENUM;
typedef const char *cd_cfg_TEXT;
typedef cd_texts cd_cfg_LIST;

typedef struct cd_config {
#define X(section, name, type, def, range, help) cd_cfg_##type section##_##name;
#include "learner/config/config_keys.def"
    const char *path; /* of the file read last; NULL: none */
    cd_arena arena;
    cd_diag diag; /* every error so far, one line each */
} cd_config;

/* The table; *n its length. */
const cd_conf_key *cd_config_keys(size_t *n);
/* Defaults; free with cd_config_free also after an error. */
cdmpp_status cd_config_init(cd_config *c, cdmpp_err *err);
/* A file over it; data.files become paths that exist where there are such. Errors: EIO and those of cd_conf_read. */
cdmpp_status cd_config_load(cd_config *c, const char *path, cdmpp_err *err);
cdmpp_status cd_config_set(cd_config *c, const char *assignment, cdmpp_err *err);
/* What one key cannot know: fractions that leave nothing to train (ESCHEMA), data.files
 * that are missing, all of them, with data.source (ENODATA). */
cdmpp_status cd_config_check(cd_config *c, const char *path, cdmpp_err *err);
/* Path `p` that `file` names: p itself where it exists or is absolute, else from the
 * folder of `file` if it exists there, else p. NULL: out of memory. */
const char *cd_config_beside(cd_arena *a, const char *file, const char *p);
void cd_config_print(cd_buf *out, const cd_config *c);
/* What a result depends on: without train.folder, and without train.memory where the data were in memory all the same. */
void cd_config_print_identity(cd_buf *out, const cd_config *c, bool on_disk);
void cd_config_json(cd_buf *out, const cd_config *c);
void cd_config_free(cd_config *c);

/* The other headers of the room that are open to other rooms. */
#include "learner/config/heldout.h"
#include "learner/config/member_plan.h"
#include "learner/config/net_options.h"
#include "learner/config/select_programs.h"
#endif
