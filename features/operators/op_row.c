/* One operator as named values, texts or numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "features/operators/operators_internal.h"

int cd_op_columns_find(const cd_op_columns *c, const char *name) {
    for (size_t i = 0; i < c->n && name[0]; i++)
        if (!strcasecmp(name, c->name[i].name)) return c->name[i].is;
    return -1;
}

static const char *name_of(const cd_op_row *r, int column) {
    size_t i = 0;
    while (r->columns->name[i].is != column) i++;
    return r->columns->name[i].name;
}

void cd_op_row_clear(cd_op_row *r, const cd_op_columns *c) {
    r->columns = c;
    for (int i = 0; i < c->n_column; i++) r->value[i] = (cd_op_value){NULL, NAN};
}

bool cd_op_row_given(const cd_op_row *r, int column) {
    const cd_op_value *v = &r->value[column];
    return v->text ? v->text[0] != 0 : !isnan(v->number);
}

const char *cd_op_row_said(const cd_op_row *r, int column, char room[48]) {
    const cd_op_value *v = &r->value[column];
    if (v->text) snprintf(room, 48, "%.40s", v->text);
    else if (isnan(v->number)) room[0] = 0;
    else snprintf(room, 48, "%.12g", v->number);
    return room;
}

cdmpp_status cd_op_row_text(const cd_op_row *r, int column, const char **out, cdmpp_err *err) {
    const cd_op_value *v = &r->value[column];
    *out = v->text ? v->text : "";
    if (v->text || isnan(v->number)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ESCHEMA, "expected a text, found the number %.12g", v->number),
                      name_of(r, column));
}

cdmpp_status cd_op_row_number(const cd_op_row *r, int column, double *out, cdmpp_err *err) {
    const cd_op_value *v = &r->value[column];
    char *end = NULL, said[48];
    *out = v->text ? strtod(v->text, &end) : v->number;
    if (cd_op_row_given(r, column) && (!end || !*end) && isfinite(*out)) return CDMPP_OK;
    return cd_err_key(
        err,
        CD_FAIL(err, ESCHEMA, "expected a number, found '%s'", cd_op_row_said(r, column, said)),
        name_of(r, column));
}

cdmpp_status cd_op_row_whole(const cd_op_row *r, int column, double low, int bits, double *out,
                             cdmpp_err *err) {
    char said[48];
    CD_TRY(cd_op_row_number(r, column, out, err));
    if (*out >= low && *out <= ldexp(1, bits) && *out <= floor(*out)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "expected a whole number in %g..2^%d, found %s", low,
                              bits, cd_op_row_said(r, column, said)),
                      name_of(r, column));
}
