# a wrong value is an error that lists the legal ones
cdmpp-profile; echo "status $?"
cdmpp-profile measure; echo "status $?"
cdmpp-profile records; echo "status $?"
cdmpp-profile records --tasks t; echo "status $?"
cdmpp-profile records --jobs 0 --tasks t r.json; echo "status $?"
cdmpp-profile corun r.json; echo "status $?"
cdmpp-profile corun --tasks t --limit 65 r.json; echo "status $?"
cdmpp-profile recrods --tasks t r.json; echo "status $?"
cdmpp-profile --list-tasks --network net.onnx; echo "status $?"
echo "--- a target of no kind, an attribute that nobody reads"
. "$T/lib.sh"
no() { cdmpp-profile "$@"; echo "status $?"; }
no draw --tasks "$K" --target lvm
no --list-tasks --network resnet-18 --target cudda
no draw --tasks "$K" --trials 1 --target 'llvm -num-core=2' >out.txt; tail -n 1 out.txt
