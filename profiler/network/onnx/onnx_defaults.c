/* Default values of a function's attributes: FunctionProto.attribute_proto. Newer definitions of
 * the format have this field and older ones do not; where the definition that we are built with
 * lacks it, it is read from the unknown fields. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

enum { FIELD = 11 };

/* The field of the definition, found with protobuf-c's descriptor; NULL: the definition does not
 * have it. */
static const CdOnnx__AttributeProto *const *known(const CdOnnx__FunctionProto *f, size_t *n) {
    const ProtobufCFieldDescriptor *d =
        protobuf_c_message_descriptor_get_field(f->base.descriptor, FIELD);
    const CdOnnx__AttributeProto *const *list;
    if (!d || d->label != PROTOBUF_C_LABEL_REPEATED ||
        d->descriptor != &cd_onnx__attribute_proto__descriptor)
        return NULL;
    memcpy(n, (const char *)f + d->quantifier_offset, sizeof *n);
    memcpy(&list, (const char *)f + d->offset, sizeof list);
    return list;
}

/* Bytes with their length in front. */
static cdmpp_status unpack(cd_onnx_reader *r, const ProtobufCMessageUnknownField *u,
                           const CdOnnx__AttributeProto **out, cdmpp_err *err) {
    cd_onnx_quota q;
    ProtobufCAllocator alloc = cd_onnx_quota_begin(&q, r->a, u->len);
    size_t k = 0;
    while (k < u->len && k < 10 && u->data[k] & 128) k++;
    *out = u->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED && k < u->len
               ? cd_onnx__attribute_proto__unpack(&alloc, u->len - k - 1, u->data + k + 1)
               : NULL;
    return *out ? CDMPP_OK : cd_onnx_quota_why(&q, "a function's attribute cannot be read", err);
}

cdmpp_status cd_onnx_function_defaults(cd_onnx_reader *r, cd_onnx_scope *s,
                                       const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    size_t n = 0;
    const CdOnnx__AttributeProto *const *list = known(f, &n);
    s->absent = CD_NEWN(r->a, const CdOnnx__AttributeProto *, n + f->base.n_unknown_fields + 1);
    if (!s->absent) return CD_FAIL(err, ENOMEM, "attributes of a function");
    for (size_t i = 0; i < n; i++) s->absent[s->n_absent++] = list[i];
    for (unsigned i = 0; i < f->base.n_unknown_fields; i++)
        if (f->base.unknown_fields[i].tag == FIELD) {
            CD_TRY(unpack(r, &f->base.unknown_fields[i], &s->absent[s->n_absent], err));
            s->n_absent++;
        }
    return CDMPP_OK;
}
