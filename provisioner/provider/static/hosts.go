package static

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// host is one line of the field hosts.
type host struct {
	address string
	// port of SSH; 22 where the line names none.
	port int
	// flavor and image that the machine serves, "" for all.
	flavor, image string
	// bind is the address for the other nodes, "" for address.
	bind string
	// user to log in as, "" for the provider's.
	user string
}

// id is what the host is called in results: the provider id of its node.
func (h host) id() string {
	if strings.Contains(h.address, ":") {
		return "[" + h.address + "]:" + strconv.Itoa(h.port)
	}
	return h.address + ":" + strconv.Itoa(h.port)
}

// fits reports whether the machine serves a flavor and an image.
func (h host) fits(flavor, image string) bool {
	return (h.flavor == "" || h.flavor == flavor) && (h.image == "" || h.image == image)
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$`)

// parseHosts reads the field hosts: one machine a line, empty lines and those that
// begin with # left out. The error names the line and what is wrong with it.
func parseHosts(text string) ([]host, error) {
	var hosts []host
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		h, err := parseHost(words)
		if err != nil {
			return nil, fmt.Errorf("line %d of hosts: %w", number, err)
		}
		if first := seen[h.id()]; first > 0 {
			return nil, fmt.Errorf("line %d of hosts: %s is on line %d already; name each machine once", number, h.id(), first)
		}
		seen[h.id()] = number
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func parseHost(words []string) (host, error) {
	h, err := parseAddress(words[0])
	if err != nil {
		return host{}, err
	}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return host{}, fmt.Errorf("%.100q is no key=value; flavor, image, bind and user are known", word)
		}
		switch key {
		case "flavor":
			h.flavor = value
		case "image":
			h.image = value
		case "user":
			h.user = value
		case "bind":
			if _, err := netip.ParseAddr(value); err != nil {
				return host{}, fmt.Errorf("bind is %.100q; give the IP address by which the other nodes reach it", value)
			}
			h.bind = value
		default:
			return host{}, fmt.Errorf("%.100q is unknown; flavor, image, bind and user are known", key)
		}
	}
	return h, nil
}

// parseAddress reads address[:port]; an IPv6 address with a port stands in brackets.
func parseAddress(text string) (host, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return host{address: a.String(), port: 22}, nil
	}
	name, port, hasPort := text, "22", false
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		name, port, hasPort = text[:i], text[i+1:], true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return host{}, fmt.Errorf("%.100q has no port between 1 and 65535 behind the colon", text)
	}
	if inner, isV6 := strings.CutPrefix(name, "["); isV6 && hasPort {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil {
			return host{}, fmt.Errorf("%.100q is no address; give an IP address or a host name", text)
		}
		return host{address: a.String(), port: int(number)}, nil
	}
	if _, err := netip.ParseAddr(name); err != nil && !hostName.MatchString(name) {
		return host{}, fmt.Errorf("%.100q is no address; give an IP address or a host name", text)
	}
	return host{address: strings.ToLower(name), port: int(number)}, nil
}
