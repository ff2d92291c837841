/* The description of a machine in memory: adding devices, finding them, choosing some of them. */
#include "profiler/machine/machine.h"

#include <math.h>
#include <string.h>

#include "base/text/text.h"

void cd_machine_init(cd_machine *m) {
    *m = (cd_machine){0};
    cd_link_table_init(&m->links);
}

void cd_machine_free(cd_machine *m) {
    cd_link_table_free(&m->links);
    cd_arena_free(&m->arena);
    *m = (cd_machine){0};
}

static uint32_t find(const cd_machine *m, const char *name, size_t n) {
    for (uint32_t i = 0; i < m->n; i++)
        if (strlen(m->device[i].name) == n && !memcmp(m->device[i].name, name, n)) return i;
    return UINT32_MAX;
}

uint32_t cd_machine_find(const cd_machine *m, const char *name) {
    return find(m, name, strlen(name));
}

/* ---- adding ---- */
static bool is_cost(double v) { return isfinite(v) && v >= 0; }

/* A name is in lists with commas, in "from>to", and unchanged in generated C, DOT, HTML and
 * makefiles: so it has no letter that ends a comment, a text or a tag there. */
static bool good_name(const char *s) {
    if (!s || !s[0] || strlen(s) > 64) return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s > '~' ||
            strchr(",<>\"'\\/*&%$`;{}|#?!", *s))
            return false;
    return true;
}

static cdmpp_status check(const cd_machine_device *d, cdmpp_err *err) {
    if (!good_name(d->name))
        return CD_FAIL(err, EINVALID,
                       "expected a device's name of letters, digits and any of . : _ + - @ ( ) [ ] "
                       "= ~ ^, found '%.70s'",
                       d->name ? d->name : "");
    if (!d->kind || cd_enum_names_find(CD_MACHINE_KINDS, (cd_str){d->kind, strlen(d->kind)}) < 0)
        return CD_FAIL(err, EINVALID,
                       "device %s: expected a kind of " CD_MACHINE_KINDS ", found '%.60s'", d->name,
                       d->kind ? d->kind : "");
    const bool opencl = !strcmp(d->kind, "native") || !strcmp(d->kind, "opencl");
    if (opencl != (d->opencl != NULL))
        return CD_FAIL(err, EINVALID, "device %s of kind %s %s the name of an OpenCL device",
                       d->name, d->kind, opencl ? "needs" : "cannot have");
    if (d->core < -1 || d->core > 65535)
        return CD_FAIL(err, EINVALID, "device %s: expected a core of -1..65535, found %d", d->name,
                       d->core);
    if (!isfinite(d->scale) || d->scale <= 0)
        return CD_FAIL(err, EINVALID, "device %s: expected a scale above 0, found %g", d->name,
                       d->scale);
    if (!is_cost(d->launch_s) || !is_cost(d->sync_s) || !is_cost(d->wake_s))
        return CD_FAIL(
            err, EINVALID,
            "device %s: expected launch_s, sync_s and wake_s of at least 0, found %g, %g, %g",
            d->name, d->launch_s, d->sync_s, d->wake_s);
    return CDMPP_OK;
}

/* A copy of s in the arena; NULL stays. */
static cdmpp_status keep(cd_machine *m, const char **s, cdmpp_err *err) {
    if (!*s) return CDMPP_OK;
    *s = cd_str_dup(&m->arena, (cd_str){*s, strlen(*s)});
    return *s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "device");
}

cdmpp_status cd_machine_add(cd_machine *m, const cd_machine_device *d, cdmpp_err *err) {
    cd_machine_device one = *d;
    CD_TRY(check(d, err));
    if (m->n == CD_MACHINE_DEVICES)
        return CD_FAIL(err, ERANGE, "device %s: a machine has at most %d devices", d->name,
                       CD_MACHINE_DEVICES);
    if (cd_machine_find(m, d->name) != UINT32_MAX)
        return CD_FAIL(err, EINVALID, "two devices are called %s", d->name);
    CD_TRY(keep(m, &one.name, err));
    CD_TRY(keep(m, &one.kind, err));
    CD_TRY(keep(m, &one.opencl, err));
    CD_TRY(keep(m, &one.target, err));
    CD_TRY(keep(m, &one.as, err));
    if (!one.times) one.times = 1;
    m->device[m->n++] = one;
    return CDMPP_OK;
}

/* ---- choosing ---- */
/* "cpu0, ocl0", as many as there is room for. */
static void list_names(const cd_machine *m, char *text, size_t room) {
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const char *const part[] = {i ? ", " : "", m->device[i].name};
        for (int k = 0; k < 2; k++)
            for (const char *c = part[k]; *c && at + 1 < room; c++) text[at++] = *c;
        text[at] = 0;
    }
}

static cdmpp_status choose_one(const cd_machine *m, const char *name, size_t n, cd_machine *out,
                               cdmpp_err *err) {
    const uint32_t i = find(m, name, n);
    char known[160];
    if (i != UINT32_MAX) return cd_machine_add(out, &m->device[i], err);
    list_names(m, known, sizeof known);
    return CD_FAIL(err, ESCHEMA, "no device '%.*s'; there %s %s", (int)(n < 60 ? n : 60), name,
                   m->n == 1 ? "is" : "are", m->n ? known : "none");
}

/* Links of devices that were not chosen are left out. */
cdmpp_status cd_machine_choose(const cd_machine *m, const char *list, cd_machine *out,
                               cdmpp_err *err) {
    cd_machine_init(out);
    for (const char *at = list, *end; at; at = end) {
        const size_t n = strcspn(at, ",");
        end = at[n] ? at + n + 1 : NULL;
        CD_TRY(choose_one(m, at, n, out, err));
    }
    for (size_t i = 0; i < m->links.n; i++) {
        const cd_link *k = &m->links.link[i];
        if (cd_machine_find(out, k->from) != UINT32_MAX &&
            cd_machine_find(out, k->to) != UINT32_MAX)
            CD_TRY(cd_link_table_add(&out->links, k, err));
    }
    out->contention = m->contention;
    out->measured = m->measured;
    out->kept = m->kept;
    out->noise = m->noise;
    return CDMPP_OK;
}
