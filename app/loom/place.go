package loom

import "net/netip"

// NetworkOf is the network of an address whose places take turns together: its /48 for IPv6,
// which is what a customer of a provider has, PlaceOf for others.
func NetworkOf(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil || !parsed.Is6() || parsed.Is4In6() {
		return PlaceOf(address)
	}
	return netip.PrefixFrom(parsed.WithZone(""), 48).Masked().String()
}

// PlaceOf is an address as limits count it: whoever has an IPv6 address has its /64, and
// this host, which has all of 127.0.0.0/8, one address. What
// is no address stays as it is.
func PlaceOf(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if parsed = parsed.Unmap().WithZone(""); parsed.Is6() {
		return netip.PrefixFrom(parsed, 64).Masked().String()
	}
	if parsed.IsLoopback() {
		return "127.0.0.1"
	}
	return parsed.String()
}
