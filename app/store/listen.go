package store

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"
)

// Notice is a NOTIFY that arrived. An empty Channel says that the connection was
// lost and is back: notices may have been missed, look at everything.
type Notice struct {
	Channel string
	Payload string
}

// Listen subscribes to channels on a connection of its own and delivers until
// ctx ends; then the returned channel is closed. A lost connection is taken up
// again by itself. Receivers must keep up: delivery blocks on them.
func Listen(ctx context.Context, dsn string, channels ...string) (<-chan Notice, error) {
	l := pq.NewListener(dsn, 100*time.Millisecond, 5*time.Second, nil)
	for _, channel := range channels {
		if err := l.Listen(channel); err != nil {
			l.Close()
			return nil, fmt.Errorf("listen to %s: %w", channel, err)
		}
	}
	out := make(chan Notice)
	go func() {
		defer close(out)
		defer l.Close()
		// A ping finds a connection that died without a word.
		ping := time.NewTicker(30 * time.Second)
		defer ping.Stop()
		for {
			var n Notice
			select {
			case <-ctx.Done():
				return
			case <-ping.C:
				go l.Ping() //nolint:errcheck // a failed ping makes the listener reconnect
				continue
			case p, ok := <-l.Notify:
				if !ok {
					return
				}
				if p != nil {
					n = Notice{Channel: p.Channel, Payload: p.Extra}
				}
			}
			select {
			case out <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
