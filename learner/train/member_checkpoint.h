/* member_checkpoint -- trained members as files in a folder, so that a stopped training goes on.
 *
 *   DIR/rows-0.member         a trained member (fold 0)
 *   DIR/transformer-0.fit     a network under way (learner/fit/fit.h); gone when it is trained
 *
 * (1) A file names all that its member depends on by a digest: configuration, data, part
 *     and label of each program, devices, the member to go on from, our version and
 *     XGBoost's. One of another training is EMODEL, a damaged one EPARSE; nothing is
 *     overwritten then.
 * (2) It takes its name in one step when it is on the disk: a kill at any moment leaves
 *     whole files (and perhaps a temporary one, removed with the next of its member).
 * (3) A member read back gives the bytes of one just trained.
 * (4) A file also holds what the training told (learner/fit/progress_event.h) at evaluations, and tells
 *     it again when it is read: a report shows all curves.
 *
 * Member file: a frame (base/io/io.h) around {"schema": "cdmpp.member", "digest", "unit",
 * "n_step", "n_sample", "curve": [[step, train, valid], ..], "member"} and the weights.
 *
 * Calls for different members may come from several threads. */
#ifndef CD_MEMBER_CHECKPOINT_H
#define CD_MEMBER_CHECKPOINT_H
#include "base/core/core.h"
#include "learner/model/model.h"
#include "learner/fit/fit.h"
#include "learner/train/training_set.h"

typedef struct cd_member_checkpoint {
    char *dir;               /* owned; NULL: no folder, for encoding only */
    cd_sha256 base;          /* of all that members share */
} cd_member_checkpoint;

/* What a member told while it was trained. */
typedef struct cd_member_checkpoint_log {
    cd_progress_event_fn *tick;      /* passed on to; NULL: nobody */
    void *ctx;
    cd_buf curve;            /* "[step,train,valid],.." */
    char unit[16];
    uint64_t n_step, n_sample;
} cd_member_checkpoint_log;
/* A cd_progress_event_fn whose ctx is a cd_member_checkpoint_log: notes it and passes it on. */
bool cd_member_checkpoint_tick(void *told, const cd_progress_event *t);

/* `dir` NULL: none; else it is made when missing, its parent is not. `start` NULL: from
 * scratch. Free k after an error too. Errors: EIO, ENOMEM. */
cdmpp_status cd_member_checkpoint_open(cd_member_checkpoint *k, const char *dir, const cd_training_set *t, const cd_model *start, cdmpp_err *err);
void cd_member_checkpoint_free(cd_member_checkpoint *k);
/* Path of e's network under way. ENOMEM. */
cdmpp_status cd_member_checkpoint_fit_path(const cd_member_checkpoint *k, const cd_member *e, CD_GIVE char **path, cdmpp_err *err);

/* The file's bytes, appended, and back. `e` has kind and fold; `name` is told to `tick`.
 * Errors of decoding: EPARSE, EUNSUPPORTED, EMODEL, EINTERRUPTED (tick), those of loading. */
cdmpp_status cd_member_checkpoint_encode(const cd_member_checkpoint *k, const cd_member *e, const cd_member_checkpoint_log *told, cd_buf *out,
                                  cdmpp_err *err);
cdmpp_status cd_member_checkpoint_decode(const cd_member_checkpoint *k, const void *p, size_t n, const char *name, cd_member_checkpoint_log *told,
                                  cd_member *e, cdmpp_err *err);
/* The same from and to the folder; *found false: no such file. */
cdmpp_status cd_member_checkpoint_read(const cd_member_checkpoint *k, const char *name, cd_member_checkpoint_log *told, cd_member *e, bool *found,
                                cdmpp_err *err);
cdmpp_status cd_member_checkpoint_write(const cd_member_checkpoint *k, const cd_member *e, const cd_member_checkpoint_log *told, cdmpp_err *err);
#endif
