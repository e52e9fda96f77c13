package mock

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// defaultAddresses is a range set aside for documentation.
const defaultAddresses = "198.51.100.0/24"

func text(spec *loom.TaskSpec, field string) string {
	value, _ := spec.Provider.Fields[field].(string)
	return value
}

func milliseconds(spec *loom.TaskSpec, field string) time.Duration {
	return time.Duration(number(spec.Provider.Fields[field])) * time.Millisecond
}

// decides says whether a field that is a percentage strikes: from node, action
// and attempt or, as fail_by asks for, from node and action alone.
func decides(spec *loom.TaskSpec, field string) bool {
	percent := number(spec.Provider.Fields[field])
	if percent == 0 {
		return false
	}
	// The field is left out for fail_percent: its outcomes are those of old runs.
	of := fmt.Sprintf("%s/%s", spec.Node, spec.Action)
	if field != "fail_percent" {
		of = field + "/" + of
	}
	if field != "fail_percent" || text(spec, "fail_by") != "node" {
		of += fmt.Sprintf("/%d", spec.Attempt)
	}
	return int(hash(of)%100) < percent
}

// place returns the address, and the port if it is a test server's.
func place(spec *loom.TaskSpec) (string, int, error) {
	if target := text(spec, "ssh_target"); target != "" {
		host, port, err := net.SplitHostPort(target)
		portNumber, convErr := strconv.Atoi(port)
		if err != nil || convErr != nil || host == "" {
			return "", 0, fmt.Errorf("field ssh_target is %q; give host:port", target)
		}
		return host, portNumber, nil
	}
	addresses := text(spec, "addresses")
	if addresses == "" {
		addresses = defaultAddresses
	}
	prefix, err := netip.ParsePrefix(addresses)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return "", 0, fmt.Errorf("field addresses is %q; give an IPv4 range of at least 4 addresses such as %s", addresses, defaultAddresses)
	}
	hosts := uint32(1)<<(32-prefix.Bits()) - 2
	base := prefix.Masked().Addr().As4()
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(base[:])+1+hash(string(spec.Node))%hosts)
	return netip.AddrFrom4(address).String(), 0, nil
}

// sleep waits; the cause with which ctx ended is its error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hang waits until ctx ends, or at most so long where most is not 0.
func hang(ctx context.Context, most time.Duration) error {
	if most > 0 {
		return sleep(ctx, most)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	// Spread the low bits, which FNV mixes badly for texts that differ at the end.
	sum := h.Sum32()
	sum ^= sum >> 16
	sum *= 0x85ebca6b
	return sum ^ sum>>13
}

// listed reports whether a comma-separated list holds a word, whatever its case.
func listed(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), word) })
}

// number reads a field that may be a number or text; anything else is 0.
func number(value any) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(value)), 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return int(n)
}
