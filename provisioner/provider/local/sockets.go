package local

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"loom/app/diskspace"
)

// Sockets of a machine. The kernel counts what waits in those of TCP and Unix, and what UDP
// received, for the machine's control group. It counts for nobody what waits in netlink,
// raw and ping sockets, and what UDP has yet to send, and any program can leave megabytes in
// each. So Watch looks and stops the machine that has too much.

// maxSockets is how many of these a machine may have; a name server has some thousands.
const maxSockets = 4096

// counted are the protocols, as /proc/net/protocols has them, whose memory counts as the
// machine's.
var counted = map[string]bool{"TCP": true, "TCPv6": true, "MPTCP": true, "MPTCPv6": true, "UNIX": true, "UNIX-STREAM": true}

// keepToSockets looks once at the sockets of all machines and stops those that have too
// much in them.
func (l *Local) keepToSockets(ctx context.Context, log func(string)) error {
	states, _, err := l.readStates()
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range states {
		memory := l.ceilings.fill(s.Limits).Memory
		if s.Deleting || s.Stopped != "" || memory == 0 || ctx.Err() != nil || !s.running() {
			continue
		}
		most := max(memory/socketShare, socketLeast)
		switch sockets := uncountedSockets(s.PID); {
		case sockets > maxSockets:
			errs = append(errs, l.stopFor(ctx, s, fmt.Sprintf("it has %d sockets besides those of TCP and Unix, and may have %d.", sockets, maxSockets), log))
		case sockets == 0:
		default:
			if bytes := uncountedBytes(s.PID); bytes > most {
				errs = append(errs, l.stopFor(ctx, s, fmt.Sprintf("%s wait in its sockets and it may have %s there.", diskspace.Size(bytes), diskspace.Size(most)), log))
			}
		}
	}
	return errors.Join(errs...)
}

// uncountedSockets is how many sockets whose memory counts for nobody are in the network of
// a process, which is read at the same cost however many there are.
func uncountedSockets(pid int) (sockets int) {
	for line := range strings.Lines(netFile(pid, "sockstat")) {
		if all, ok := strings.CutPrefix(line, "sockets: used "); ok {
			sockets, _ = strconv.Atoi(strings.TrimSpace(all))
		}
	}
	for line := range strings.Lines(netFile(pid, "protocols")) {
		if fields := strings.Fields(line); len(fields) > 2 && counted[fields[0]] {
			n, _ := strconv.Atoi(fields[2])
			sockets -= n
		}
	}
	return max(0, sockets)
}

// uncountedBytes is the memory of what waits in the sockets of a network that counts for
// nobody.
func uncountedBytes(pid int) (bytes int64) {
	add := func(text string, base int) {
		n, _ := strconv.ParseInt(text, base, 64)
		bytes += n
	}
	for name, received := range map[string]bool{"netlink": true, "raw": true, "raw6": true, "icmp": true, "icmp6": true, "udp": false, "udp6": false, "udplite": false, "udplite6": false} {
		for line := range strings.Lines(netFile(pid, name)) {
			fields := strings.Fields(line)
			if len(fields) < 6 {
				continue
			}
			sending, receiving, queues := strings.Cut(fields[4], ":")
			switch {
			case name == "netlink":
				add(fields[4], 10)
			case queues:
				add(sending, 16)
				if received {
					add(receiving, 16)
				}
			}
		}
	}
	return bytes
}

// netFile reads a file about the network of a process: maxSockets are well below 1 MiB.
func netFile(pid int, name string) string {
	text, _ := readStart(fmt.Sprintf("/proc/%d/net/%s", pid, name), 1<<20)
	return string(text)
}
