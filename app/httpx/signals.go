package httpx

import (
	"context"
	"time"

	"loom/app/live"
	"loom/app/loom"
)

// SignalOptions are how a stream of signals behaves; all but Stopping are needed.
type SignalOptions struct {
	// KeepAlive is how often the stream says that it is there, Recheck how often May
	// is asked, Pace the shortest time between two signals of a topic.
	KeepAlive, Recheck, Pace time.Duration
	// Stopping, when closed, ends the stream; the context does so as well.
	Stopping <-chan struct{}
	// May says whether the client may still follow. A database that does not answer
	// is no reason to end a stream.
	May func() error
}

// Signals passes the signals of sub on until the client is gone, may not know any
// more, or the process stops. The client gets its first cursor
// before the first signal, so that it can come back also when nothing happened yet.
func (s *Stream) Signals(ctx context.Context, sub *live.Subscription, o SignalOptions) {
	keepAlive, recheck := time.NewTicker(o.KeepAlive), time.NewTicker(o.Recheck)
	defer keepAlive.Stop()
	defer recheck.Stop()
	// While the pause lasts, ready is nil and signals collect.
	ready, pause := sub.Ready(), time.NewTimer(0)
	defer pause.Stop()
	err := s.Place(sub.Cursor())
	for err == nil {
		select {
		case <-ctx.Done():
			// The client is gone, which makes this a write into nothing, or the server
			// stops and cancels all requests.
			s.End("shutdown") //nolint:errcheck // over either way
			return
		case <-o.Stopping:
			s.End("shutdown") //nolint:errcheck // over either way
			return
		case <-keepAlive.C:
			// A cursor that stays where it is gets too old while nothing happens.
			if err = s.Comment(); err == nil {
				err = s.Place(sub.Cursor())
			}
		case <-recheck.C:
			if refused(o.May()) {
				s.End("forbidden") //nolint:errcheck // over either way
				return
			}
		case <-pause.C:
			ready = sub.Ready()
		case <-ready:
			err = s.sendSignals(sub.Take())
			ready = nil
			pause.Reset(o.Pace)
		}
	}
}

func (s *Stream) sendSignals(signals []live.Signal) error {
	for _, signal := range signals {
		var err error
		if signal.Reset {
			err = s.Send(signal.Cursor, "reset", struct{}{})
		} else {
			err = s.Send(signal.Cursor, signal.Topic, map[string][]string{"ids": signal.IDs})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refused reports whether an error is about rights, and not about the moment.
func refused(err error) bool {
	if err == nil {
		return false
	}
	switch loom.AsError(err).Kind {
	case loom.Internal, loom.Unavailable, loom.Throttled:
		return false
	}
	return true
}
