# an entry of devices.yaml; a made-up topology; what is not there
export HWLOC_SYNTHETIC="package:1 l3:1(size=8388608) l2:4(size=524288) l1d:1(size=32768) core:1 pu:1"
cdmpp-profile --describe-device | grep -E '^  (kind|cores|l[123]_kb|lanes)'
cdmpp-profile --describe-device --json cpu | grep -o '"schema":"[a-z._]*"'
cdmpp-profile --describe-device --measure; echo "status $?"
cdmpp-profile --describe-device fpga; echo "status $?"
cdmpp-profile --describe-device cuda:x; echo "status $?"
