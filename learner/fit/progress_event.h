/* progress_event -- what a training reports while it runs: one call after each round or epoch.
 *
 * Members of a model may be trained side by side, so the calls may come from
 * several threads at once, and the rounds of different members interleave. */
#ifndef CD_PROGRESS_EVENT_H
#define CD_PROGRESS_EVENT_H
#include <stdbool.h>
#include <stdint.h>

typedef struct cd_progress_event {
    const char *member;    /* "rows", "member 3": which part of the model */
    const char *unit;      /* "round", "epoch": what a step is */
    uint64_t step, n_step; /* 1-based; at most n_step, early stopping may end before */
    uint64_t n_sample;     /* programs that one step goes through */
    double train, valid;   /* losses; NaN: not computed at this step */
    bool end;              /* the member's last step */
    uint64_t n_member;     /* members in all; 0: not known */
} cd_progress_event;

/* False stops the training with EINTERRUPTED. */
typedef bool cd_progress_event_fn(void *ctx, const cd_progress_event *t);
#endif
