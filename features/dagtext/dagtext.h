/* The door of features/dagtext: a definition in the form in which TVM prints it, one line per
 * operator.
 *
 *   p0 = PLACEHOLDER [1, 8, 8, 4]
 *   pad(i0, i1, i2, i3) = tir.if_then_else(((i1 >= 1) && (i1 < 9)), p0[i0, (i1 - 1), i2, i3], 0f)
 *   conv(n, y, x, f) += (pad[n, (y + ry), x, rc]*p1[ry, rc, f])
 *
 * The MD5 of a short form of this text is the first part of the workload key, so a text proves that
 * it belongs to its key. What it leaves open is solved from the shapes in the key, by laws that
 * hold for TVM's operators:
 *   (1) a read lies inside the tensor that it reads, where the condition around it holds;
 *   (2) of each dimension of a tensor all is read, but for a rest that is smaller than the stride
 *       of its widest reader;
 *   (3) a reduction takes all of what it reads, but for such a rest;
 *   (4) axes begin at 0, and reduction axes stand in the order of their first use.
 * Where these leave more than one solution, nothing is answered: the error says what is open. No
 * state, any thread. */
#ifndef CD_DAGTEXT_H
#define CD_DAGTEXT_H
#include "features/te/te.h"

/* What the caller allows to assume where the text is open: bits. */
enum {
    CD_DAGTEXT_SYMMETRIC_PADDING = 1, /* padding is as wide behind as before */
    CD_DAGTEXT_FLOAT32 = 2            /* a type that nothing in the text fixes is float32 */
};
/* their names, bit by bit (enum_names) */
#define CD_DAGTEXT_ASSUMPTIONS "symmetric-padding|float32"

/* May the line be one of a definition? Without its newline. */
bool cd_dagtext_is_line(cd_str line);
/* The hash of lines that end with a newline each. Errors: ENOMEM. */
cdmpp_status cd_dagtext_hash(cd_str text, char out[33], cdmpp_err *err);
/* The definition of a workload key, ["hash", [shape], ...] or ["hash", dimension, ...], from its
 * text. *rests: the assumptions that were needed, of those allowed. The result prints to the same
 * text, and has the key. Errors: ESCHEMA (the text is not that of the key, a line is cut),
 * EUNSUPPORTED (what this reader does not know), ENOTASK (open; the message says what), ENOMEM. */
cdmpp_status cd_dagtext_read(cd_str key, cd_str text, unsigned allowed, CD_GIVE cd_te_dag **out,
                             unsigned *rests, cdmpp_err *err);
#endif
