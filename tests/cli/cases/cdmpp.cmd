# cdmpp COMMAND is the program beside it; its exit status is that of cdmpp
cdmpp replay --list-networks | head -n 2
cdmpp replay --network nosuch --json 2>&1; echo "status $?"
cdmpp predict --version | sed 's/ [0-9][0-9.]*$/ N/; q'
cdmpp --version | sed 's/ [0-9][0-9.]*$/ N/; q'
cdmpp nosuch; echo "status $?"
cdmpp replya; echo "status $?"
touch my.onnx; cdmpp my.onnx; echo "status $?"
cdmpp calibrate; echo "status $?"
cdmpp help | head -n 1; cdmpp help tune | head -n 1 | cut -c1-16; cdmpp help nosuch >/dev/null 2>&1; echo "status $?"
cdmpp --jsn; echo "status $?"
cdmpp -q words; echo "status $?"
# without a default model (none here) it says what to do, below the machine
cdmpp | sed 's/  .*/ .../'; cdmpp -q >/dev/null; echo "status $?"
# a program that is not there
mkdir bin && cp "$(command -v cdmpp)" bin/ && PATH=/nowhere bin/cdmpp train; echo "status $?"
# the words of a command complete as for the program itself; both scripts lie beside each other
cdmpp --help=bash >cdmpp; cdmpp-replay --help=bash >cdmpp-replay; cdmpp --help=zsh >zscript
bash -c '. ./cdmpp; COMP_WORDS=(cdmpp tu); COMP_CWORD=1; _cdmpp; echo "${COMPREPLY[@]}"; COMP_WORDS=(cdmpp replay --list); COMP_CWORD=2; _cdmpp; echo "${COMPREPLY[@]}"'
! command -v zsh >/dev/null || zsh -n zscript
cdmpp --help=man >page; command -v groff >/dev/null && groff -ww -man -Tutf8 page 2>&1 >/dev/null
grep -c '^.fBpartition.fR' page
