package httpx

import (
	"net"
	"net/netip"
	"sync"
	"syscall"

	"loom/app/loom"
)

// maxConnectionsEach are open from one address that is neither a proxy nor this host.
const maxConnectionsEach = 1000

// Listen bounds the connections of a server, also of those who send nothing: two thirds of
// the files that the process may have open, and so many of one address, except for proxies
// and this host. What is more is closed at once.
func Listen(inner net.Listener, proxies []netip.Prefix) net.Listener {
	most := 0
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most = int(min(files.Cur, 1<<30)) / 3 * 2
	}
	return &listener{Listener: inner, proxies: proxies, most: most, each: maxConnectionsEach, of: map[string]int{}}
}

type listener struct {
	net.Listener
	proxies    []netip.Prefix
	most, each int // most is 0 for no limit

	mu  sync.Mutex
	all int
	of  map[string]int
}

// Accept gives the next connection that is not one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		place := l.placeOf(c.RemoteAddr())
		if l.enter(place) {
			return &connection{Conn: c, leave: sync.OnceFunc(func() { l.leave(place) })}, nil
		}
		c.Close() //nolint:errcheck // nothing was sent
	}
}

// placeOf is where a connection counts, "" for those that count for the whole only.
func (l *listener) placeOf(remote net.Addr) string {
	address, ok := parseAddress(remote.String())
	if !ok || address.IsLoopback() || within(address, l.proxies) {
		return ""
	}
	return loom.PlaceOf(address.String())
}

func (l *listener) enter(place string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most > 0 && l.all >= l.most || place != "" && l.of[place] >= l.each {
		return false
	}
	l.all++
	if place != "" {
		l.of[place]++
	}
	return true
}

func (l *listener) leave(place string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if place != "" {
		take(l.of, place)
	}
}

// connection makes room when it is closed.
type connection struct {
	net.Conn
	leave func()
}

// Close makes room and closes.
func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}
