#!/bin/sh
# What the images of the test do in their containers, for the contract stub of docker:
# the programs of the machine itself, with the files that are mounted as volumes.
case $2 in
site/web:1) service nginx "$1" ;;
site/balancer:1) service haproxy "$1" ;;
*) echo "no image $2" >&2; exit 1 ;;
esac
