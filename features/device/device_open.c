/* A file of the user's, and ours behind it: what both describe is as the user says it.
 *
 *   mine.yaml  h100 (other numbers), board      the user's own, first
 *   ours       h100, h200, b200 ...         ->  h100 and board of mine.yaml, then h200, b200 ... of
 *                                              ours
 *
 * A name of ours that the user's file does not use goes on to name the same device. */
#include <stdint.h>
#include <string.h>

#include "features/device/device_internal.h"

static const cd_device_handle *handle_of(const cd_device_table *l, const char *bare) {
    for (size_t i = 0; i < l->n_name; i++)
        if (!strcmp(l->name[i].bare, bare)) return &l->name[i];
    return NULL;
}

size_t cd_device_table_of_arch(const cd_device_table *l, cd_str arch, const char **out,
                               size_t most) {
    size_t n = 0;
    /* what this very chip has beside */
    if (arch.n > 3 && !memcmp(arch.p, "sm_", 3) &&
        (arch.p[arch.n - 1] == 'a' || arch.p[arch.n - 1] == 'f'))
        arch.n--;
    for (size_t i = 0; i < cd_device_table_count(l); i++) {
        const cd_device *d = cd_device_table_at(l, i);
        if (!d->arch || !cd_str_is(arch, d->arch)) continue;
        if (n < most) out[n] = d->name;
        n++;
    }
    return n;
}

/* Which own device each of ours gives way to; SIZE_MAX: none. A name counts before aliases, as it
 * stands first. */
static void find_taken(const cd_device_table *own, const cd_device_table *ours, size_t *taken) {
    for (size_t i = 0; i < ours->n; i++) taken[i] = SIZE_MAX;
    for (size_t i = 0; i < ours->n_name; i++) {
        const cd_device_handle *h = handle_of(own, ours->name[i].bare);
        if (h && taken[ours->name[i].device] == SIZE_MAX) taken[ours->name[i].device] = h->device;
    }
}

/* A copy of our file replaces nothing. */
static void say_replaced(cd_device_table *own, const cd_device_table *ours, const size_t *taken,
                         const char *path) {
    size_t n = 0;
    for (size_t i = 0; i < ours->n; i++) {
        if (taken[i] == SIZE_MAX ||
            cd_device_same_numbers(&own->device[taken[i]], &ours->device[i]))
            continue;
        if (!n++) cd_buf_putf(&own->replaced, "%s replaces what cdmpp says of ", path);
        else cd_buf_puts(&own->replaced, ", ");
        cd_buf_puts(&own->replaced, ours->device[i].name);
    }
    if (n) cd_buf_puts(&own->replaced, "\n");
}

/* `ours` lives as long as `own` from here on, also after an error. */
static cdmpp_status add_behind(cd_device_table *own, cd_device_table *ours, const char *path,
                               cdmpp_err *err) {
    cd_device *all = CD_NEWN(&own->arena, cd_device, own->n + ours->n);
    size_t *taken = CD_NEWN(&own->arena, size_t, ours->n);
    cd_device_handle *name = cd_mem_zalloc(own->n_name + ours->n_name, sizeof *name);
    own->behind = ours;
    if (!all || !taken || !name) return cd_mem_free(name), CD_FAIL(err, ENOMEM, "devices");
    find_taken(own, ours, taken);
    say_replaced(own, ours, taken, path);
    memcpy(all, own->device, own->n * sizeof *all);
    memcpy(name, own->name, own->n_name * sizeof *name);
    cd_mem_free(own->name);
    own->device = all, own->name = name;
    for (size_t i = 0; i < ours->n; i++) {
        if (taken[i] != SIZE_MAX) continue;
        taken[i] = own->n;
        all[own->n++] = ours->device[i];
    }
    for (size_t i = 0; i < ours->n_name; i++) {
        const cd_device_handle *h = &ours->name[i];
        if (!handle_of(own, h->bare))
            name[own->n_name++] = (cd_device_handle){h->text, h->bare, h->at, taken[h->device]};
    }
    return own->replaced.oom ? CD_FAIL(err, ENOMEM, "devices") : CDMPP_OK;
}

/* What is behind is a help: where there is none, or it is damaged, the own file is all there is. */
static cdmpp_status put_behind(cd_arena *a, const char *own, const char *config, cd_device_table *l,
                               cdmpp_err *err) {
    cd_diag diag = {0};
    cd_device_table *ours = NULL;
    const char *path = NULL;
    cdmpp_status st = cd_device_table_path(a, NULL, config, &path, NULL);
    if (!st && strcmp(path, own) != 0)
        st = cd_device_table_open(a, NULL, config, &diag, NULL, &ours, NULL);
    cd_diag_free(&diag);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "devices");
    return ours ? add_behind(l, ours, own, err) : CDMPP_OK;
}

cdmpp_status cd_device_table_open(cd_arena *a, const char *wanted, const char *config,
                                  cd_diag *diag, const char **path, cd_device_table **out,
                                  cdmpp_err *err) {
    const bool named = wanted && wanted[0];
    const char *found;
    cd_device_table *l = NULL;
    CD_TRY(cd_device_table_path(a, wanted, config, &found, err));
    CD_TRY(cd_device_table_load(found, diag, &l, err));
    const cdmpp_status st =
        named || config ? put_behind(a, found, named ? config : NULL, l, err) : CDMPP_OK;
    if (st) cd_device_table_free(l);
    else *out = l;
    if (path) *path = found;
    return st;
}

bool cd_device_table_own(const cd_device_table *l, const cd_device *d) {
    return d >= l->device && d < l->device + l->own;
}
