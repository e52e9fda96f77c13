package cloud

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// usualCalls is how many calls are in flight at a cloud unless its provider says
// otherwise, and mostCalls the most that it may say.
const usualCalls, mostCalls = 8, provider.MostCalls

// inFlight bounds the calls of this process at each cloud.
var inFlight = gates{at: map[string]*gate{}}

// gates let calls in by the order in which they came, a limited number at once. A slow
// cloud that everybody asks at once answers nobody in time.
type gates struct {
	mu sync.Mutex
	at map[string]*gate
}

// gate is that of one cloud and tenant; it exists while somebody needs it.
type gate struct {
	taken int
	queue []*turn
}

// turn waits until fewer than most calls are in flight.
type turn struct {
	most int
	come chan struct{}
}

// enter waits for a turn; leave gives it back and may be called more than once.
func (g *gates) enter(ctx context.Context, key string, most int) (leave func(), err error) {
	g.mu.Lock()
	at := g.at[key]
	if at == nil {
		at = &gate{}
		g.at[key] = at
	}
	mine := &turn{most: most, come: make(chan struct{})}
	at.queue = append(at.queue, mine)
	at.admit()
	g.mu.Unlock()
	leave = sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if i := slices.Index(at.queue, mine); i >= 0 {
			at.queue = slices.Delete(at.queue, i, i+1)
		} else {
			at.taken--
		}
		if at.admit(); at.taken == 0 && len(at.queue) == 0 {
			delete(g.at, key)
		}
	})
	select {
	case <-mine.come:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// admit lets in who came first, as long as there is room for him.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.taken < g.queue[0].most {
		close(g.queue[0].come)
		g.queue = g.queue[1:]
		g.taken++
	}
}

type turnKey struct{}

// longTurn is how long a call waits for its turn until the log of the task says so.
const longTurn = 10 * time.Second

// turn waits until the cloud may be asked one more thing; what is asked within it needs
// no other turn. Questions outside of tasks do not wait: they come one after the other.
func (s *Session) turn(ctx context.Context) (context.Context, func(), error) {
	if ctx.Value(turnKey{}) != nil || s.apart {
		return ctx, func() {}, nil
	}
	begin := time.Now()
	leave, err := inFlight.enter(ctx, s.gate, s.most)
	if err != nil {
		return ctx, nil, err
	}
	if waited := time.Since(begin); waited >= longTurn {
		s.Log("waited %s for other calls to this cloud; provider field %s allows %d at once", waited.Round(time.Second), provider.CallsField, s.most)
	}
	return context.WithValue(ctx, turnKey{}, leave), leave, nil
}

// Waiting returns the turn of a question back: from here on the cloud is waited for and not
// kept busy, such as by a call that it answers when something is done.
func Waiting(ctx context.Context) {
	if leave, ok := ctx.Value(turnKey{}).(func()); ok {
		leave()
	}
}

// gateOf names what calls in flight are counted for: a tenant at one cloud, which its
// addresses tell. A tenant does not wait for others.
func gateOf(t loom.PluginType, tenant loom.TenantID, f Fields) string {
	return strings.Join([]string{string(tenant), t.Name, endpointOf(t, f)}, "\x00")
}

// endpointOf names the cloud that a provider leads to: the hosts of its addresses.
func endpointOf(t loom.PluginType, f Fields) string {
	var hosts []string
	for _, name := range addressFields(t) {
		host := f.Text(name)
		if u, err := url.Parse(host); err == nil && u.Host != "" {
			host = u.Host
		}
		if host != "" && !slices.Contains(hosts, strings.ToLower(host)) {
			hosts = append(hosts, strings.ToLower(host))
		}
	}
	return strings.Join(hosts, " ")
}

// addressFields are the fields of a type that hold addresses, by name.
func addressFields(t loom.PluginType) []string {
	var names []string
	for _, group := range t.Parameters {
		for name, f := range group.Fields {
			if f.Format == loom.FormatURL {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
