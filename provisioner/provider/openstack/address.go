package openstack

import (
	"maps"
	"net/netip"
	"slices"

	"loom/provisioner/provider/cloud"
)

// address is one of a server.
type address struct {
	ip       string
	floating bool
}

// Names of networks with a meaning of their own.
const (
	publicNetwork  = "public"
	privateNetwork = "private"
)

// read returns the addresses of version 4, by the name of their network. What
// cannot be read is left out.
func read(answer map[string]any) map[string][]address {
	found := map[string][]address{}
	for name, list := range answer {
		entries, _ := list.([]any)
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			text, _ := fields["addr"].(string)
			ip, err := netip.ParseAddr(text)
			if err != nil || !ip.Is4() {
				continue
			}
			found[name] = append(found[name], address{text, fields["OS-EXT-IPS:type"] == "floating"})
		}
	}
	return found
}

// choose returns the addresses of a server: the floating one of the
// first network that has one is for access, the fixed one of the first network that has
// one is for the other nodes. The networks of order come first, then "private",
// then the others by name; "public" is for the other nodes only where there is no other,
// and for access where nothing floats.
func choose(found map[string][]address, order []string) (access, bind string) {
	order = append(slices.Clone(order), privateNetwork)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if name != publicNetwork {
			order = append(order, name)
		}
	}
	order = append(order, publicNetwork)
	access, bind = last(found, order, true), last(found, order, false)
	if access == "" {
		access = last(found, []string{publicNetwork}, false)
	}
	return cloud.Addresses(access, bind)
}

// last returns the last address of a kind in the first network that has one.
func last(found map[string][]address, order []string, floating bool) string {
	for _, name := range order {
		for _, a := range slices.Backward(found[name]) {
			if a.floating == floating {
				return a.ip
			}
		}
	}
	return ""
}
