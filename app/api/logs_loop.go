package api

import (
	"time"

	"loom/app/loom"
)

// loop follows a log until send says that it has ended, or the client or the process
// goes. It sends at once, then when a signal of the operation or wake tells of news, at
// most once per pace, and again after the time that send gives, 0 for not by itself. The
// actor is asked from time to time whether he still may read.
func (f *follower) loop(wake <-chan struct{}, pace time.Duration, may func(now loom.Actor) error, send func() (again time.Duration, ended bool)) {
	keepAlive, recheck := time.NewTicker(f.keepAlive), time.NewTicker(f.recheck)
	defer keepAlive.Stop()
	defer recheck.Stop()
	look, due := time.NewTimer(0), true
	defer look.Stop()
	soon := func() {
		if !due {
			due = true
			look.Reset(pace)
		}
	}
	for {
		select {
		case <-f.r.Context().Done(): // the client is gone, or the server stops
			f.stream.End("shutdown") //nolint:errcheck // over either way
			return
		case <-f.Stopping:
			f.stream.End("shutdown") //nolint:errcheck // over either way
			return
		case <-keepAlive.C:
			if f.stream.Comment() != nil {
				return
			}
		case <-recheck.C:
			if f.stillMay(f.r, f.actor, may) != nil {
				f.stream.End("forbidden") //nolint:errcheck // over either way
				return
			}
		case <-f.signals.Ready():
			f.signals.Take()
			soon()
		case <-wake: // also when a signal was lost
			soon()
		case <-look.C:
			again, ended := send()
			if ended {
				return
			}
			if due = again > 0; due {
				look.Reset(again)
			}
		}
	}
}
