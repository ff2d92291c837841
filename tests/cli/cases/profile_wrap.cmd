# a program's own output and exit status stay; what is told comes on standard error or in a file
cdmpp-profile wrap --json --out r.json -- sh -c 'echo out; exit 5'; echo "status $?"
grep -o '"exit":5,' r.json
cdmpp-profile wrap -- sh -c 'kill -9 $$' 2>r.txt; echo "status $?"
sed -n 's/^\(signal 9\),.*/\1/p' r.txt
cdmpp-profile wrap; echo "status $?"
cdmpp-profile wrap -- /nonexistent/program; echo "status $?"
