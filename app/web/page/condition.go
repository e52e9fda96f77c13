package page

import (
	"context"
	"net/http"
	"sync"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// conditionAge is how long an answer about the installation is good: pages ask for
	// it again and again.
	conditionAge = 10 * time.Second
	// conditionLimit bounds the question, so that a database that hardly answers does
	// not make pages slower still.
	conditionLimit = time.Second
	// slowDatabase is what an answer of the database may take that reads a few rows.
	slowDatabase = 500 * time.Millisecond
	// lateWork is how long background work may wait.
	lateWork = time.Minute
	// settling is how long after the start of this process others may still be coming.
	settling = time.Minute
)

const noProvisioner = "No provisioner is running, so operations wait."

// condition is what pages know of the installation, asked for now and then.
type condition struct {
	mu      sync.Mutex
	asked   time.Time
	banners []ui.BannerModel
}

// conditionBanners warns on every page of a database or a queue that does not do what it
// should. One request in ten seconds asks, the others take what it found.
func (s *Shared) conditionBanners(r *http.Request, actor loom.Actor, m *layout.Model) {
	if s.Condition == nil || actor.Tenant == "" { // it is for those who work here
		return
	}
	now := s.Now()
	s.state.mu.Lock()
	ask := now.Sub(s.state.asked) >= conditionAge
	if ask {
		s.state.asked = now
	}
	found := s.state.banners
	s.state.mu.Unlock()
	if ask {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), conditionLimit) // the answer is for all
		c, err := s.Condition(ctx)
		cancel()
		if err != nil {
			s.Log.Warn("the condition of the installation is not known", "request_id", httpx.RequestID(r), "error", err.Error())
		}
		found = conditionTexts(c, err, now.Sub(s.Begun) > settling)
		s.state.mu.Lock()
		s.state.banners = found
		s.state.mu.Unlock()
	}
	for _, b := range found {
		if b.Text == noProvisioner && actor.May(loom.Administer, actor.InTenant()) == nil {
			continue // Shortage tells administrators more of it
		}
		if actor.May(loom.Install, loom.Installation) == nil {
			b.Action, b.ActionHref = "Status", route.SystemStatus()
		}
		m.Banners = append(m.Banners, b)
	}
}

// conditionTexts words what hinders work. settled says that processes had the time to
// come.
func conditionTexts(c processes.Condition, err error, settled bool) []ui.BannerModel {
	warn := func(text string) ui.BannerModel { return ui.BannerModel{Tone: ui.ToneWarn, Text: text} }
	switch {
	case err != nil:
		return []ui.BannerModel{warn("The database is slow. Pages may fail and operations wait. Machines keep running.")}
	case !c.Writable:
		return []ui.BannerModel{{Tone: ui.ToneBad, Text: "The database is read-only. Nothing can be changed, and operations wait. Machines keep running."}}
	}
	var found []ui.BannerModel
	if c.Answer > slowDatabase {
		found = append(found, warn("The database answers slowly ("+ui.Duration(c.Answer)+"); pages and operations take longer than usual."))
	}
	if !settled {
		return found
	}
	switch {
	case c.Schedulers == 0:
		found = append(found, warn("No scheduler is running, so operations do not end and leases are not watched."))
	case c.Lateness() > lateWork:
		found = append(found, warn("Background work is late by "+ui.Duration(c.Lateness().Truncate(time.Second))+": operations end later, and so do leases."))
	}
	if c.Provisioners == 0 {
		found = append(found, warn(noProvisioner))
	}
	return found
}
