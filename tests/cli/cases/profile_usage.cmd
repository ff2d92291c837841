# a wrong value is an error that lists the legal ones
cdmpp-profile; echo "status $?"
cdmpp-profile measure; echo "status $?"
cdmpp-profile records; echo "status $?"
cdmpp-profile records --tasks t; echo "status $?"
cdmpp-profile records --jobs 0 --tasks t r.json; echo "status $?"
cdmpp-profile records --tasks t --host a --stats s --out o r.json; echo "status $?"
