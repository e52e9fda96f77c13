package httpx

import (
	"net"
	"net/netip"
	"sync"
	"syscall"

	"loom/app/loom"
)

// writeBuffer is how much of an answer the kernel keeps for a client that does not read, in
// bytes: by itself it would keep megabytes for each.
const writeBuffer = 256 << 10

// maxConnectionsEach are open from one address that is neither a proxy nor this host.
const maxConnectionsEach = 1000

// Listen bounds the connections of a server, also of those who send nothing: two thirds of
// the files that the process may have open, and so many of one address, except for proxies
// and this host. This host leaves a tenth of all to the others, and they leave a tenth to it.
// What is more is closed at once.
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
	// here are those of this host.
	here int
	of   map[string]int
}

// Accept returns the next connection that is not one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		place, here := l.placeOf(c.RemoteAddr())
		if l.enter(place, here) {
			if tcp, ok := c.(*net.TCPConn); ok {
				tcp.SetWriteBuffer(writeBuffer) //nolint:errcheck // then it keeps more
			}
			return &connection{Conn: c, leave: sync.OnceFunc(func() { l.leave(place, here) })}, nil
		}
		c.Close() //nolint:errcheck // nothing was sent
	}
}

// placeOf is where a connection counts, "" for those that count for the whole only; here are
// those of this host.
func (l *listener) placeOf(remote net.Addr) (place string, here bool) {
	address, ok := parseAddress(remote.String())
	here = ok && address.IsLoopback()
	if !ok || here || within(address, l.proxies) {
		return "", here
	}
	return loom.PlaceOf(address.String()), false
}

func (l *listener) enter(place string, here bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	side := l.all - l.here
	if here {
		side = l.here
	}
	if l.most > 0 && (l.all >= l.most || side >= l.most-l.most/10) || place != "" && l.of[place] >= l.each {
		return false
	}
	l.all++
	if here {
		l.here++
	}
	if place != "" {
		l.of[place]++
	}
	return true
}

func (l *listener) leave(place string, here bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if here {
		l.here--
	}
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
