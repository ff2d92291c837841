/* answer_cache -- keeps the answers of a model, for a search that asks for the same candidates
 * again.
 *
 *   cd_candidate -> 128-bit hash -> set of 4 entries -> { hash, age, pred, device, traits }
 *
 * (1) Only the model's own answers are kept, before measured results correct them: an observer may
 *     learn meanwhile. What failed is not kept.
 * (2) The hash covers everything that the answer depends on beyond model, profile and the context's
 *     options, which are the same for all of a context: form, text or rows, task, target, hardware,
 *     operations, device. Costs of a record count as far as they are read. It does not cover what
 *     the caller calls the request.
 * (3) Bounded: an entry that has to go is the one of its set that was used longest ago.
 * (4) A kept answer has the bits of its first time. Networks give other last bits in other company
 *     (learner/tensor/tensor.h), trees do not.
 * Any number of threads. */
#ifndef CD_ANSWER_CACHE_H
#define CD_ANSWER_CACHE_H
#include "base/core/core.h"
#include "predictor/score/scorer.h"

enum { CD_CACHE_WAYS = 4 };

typedef struct cd_answer_cache cd_answer_cache;

/* Room for `entries` > 0, rounded up to whole sets. Errors: ENOMEM. */
cdmpp_status cd_answer_cache_new(size_t entries, CD_GIVE cd_answer_cache **out, cdmpp_err *err);
void cd_answer_cache_free(CD_TAKE cd_answer_cache *c); /* NULL is fine */
/* of all forms but CD_CANDIDATE_SCHEDULE, whose steps the caller knows by a digest */
cd_hash cd_answer_cache_key(const cd_candidate *ask);
/* *out as the scorer left it then; its task and key are those of `ask`. */
bool cd_answer_cache_find(cd_answer_cache *c, const cd_hash *key, const cd_candidate *ask,
                          cd_scored *out);
void cd_answer_cache_put(cd_answer_cache *c, const cd_hash *key, const cd_scored *o);
/* Calls of find, and those that found something. */
void cd_answer_cache_counts(cd_answer_cache *c, uint64_t *asked, uint64_t *found);
#endif
