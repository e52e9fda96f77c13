package ui

import (
	"strconv"
	"strings"
)

// ShortHost is the first label of a host name.
func ShortHost(hostname string) string {
	short, _, _ := strings.Cut(hostname, ".")
	return short
}

// NodeNumber is what pages call a node: the number at the end of its host name, and the first
// label of a host name without one.
func NodeNumber(hostname string) string {
	short := ShortHost(hostname)
	number := short[strings.LastIndexByte(short, '-')+1:]
	if _, err := strconv.Atoi(number); err != nil {
		return short
	}
	return number
}
