/* onnx_strip_internal -- a model without what makes it large.
 *
 * Walks the wire format (tag, length, bytes), copies it and leaves out contents of
 * tensors that hold more than CD_GRAPH_MAX_VALUE elements for sure, the training
 * part and documentation. So a file of gigabytes needs the memory of its graph, and
 * what protobuf-c reads afterwards is neither deeper than CD_ONNX_MAX_DEPTH nor
 * larger than CD_ONNX_MAX_STRIPPED. */
#ifndef CD_ONNX_STRIP_INTERNAL_H
#define CD_ONNX_STRIP_INTERNAL_H
#include "base/core/core.h"

#define CD_ONNX_MAX_DEPTH 64
#define CD_ONNX_MAX_STRIPPED ((size_t)256 << 20)

/* The n bytes of a serialized ModelProto, without large contents, appended to *out. Errors: EPARSE (with the byte), ERANGE, ENOMEM. */
cdmpp_status cd_onnx_strip(const void *data, size_t n, cd_buf *out, cdmpp_err *err);
#endif
