package clusters

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// leaseLayouts are the ways to write the end of a lease, where the viewer is.
var leaseLayouts = []string{"2006-01-02 15:04", "2006-01-02", time.RFC3339, "2006-01-02T15:04"}

// usualStep prolongs a lease where the template has neither a step nor an initial lease.
const usualStep = 7 * 24 * time.Hour

func (s *Server) clusterLeaseForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showLease(w, r, actor, http.StatusOK, v, s.leaseModel(ui.ViewerOf(r.Context()), v, "", "", ui.FormErrors{}))
}

func (s *Server) showLease(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, m clusterview.LeaseModel) error {
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, status, clusterview.LeaseDialog(m))
	}
	page := clusterPage("Change expiry of "+v.Name, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Change expiry"})
	return s.Render(w, r, actor, status, page, clusterview.LeasePage(m))
}

// leaseSteps prolong a lease with one press.
var leaseSteps = []struct{ value, label string }{{"1h", "+1 h"}, {"4h", "+4 h"}, {"1d", "+1 d"}}

func (s *Server) leaseModel(see ui.Viewer, v clusters.ClusterView, day, clock string, errs ui.FormErrors) clusterview.LeaseModel {
	m := clusterview.LeaseModel{Cluster: v.ID, Name: v.Name, WhyNot: v.Allowed[loom.ChangeLease], Submit: "Change expiry"}
	ends := ui.Def{Term: "Expires", Text: "No expiry"}
	if v.Expires.IsZero() {
		m.Submit = "Set expiry"
	} else {
		ends = ui.Def{Term: "Expires", Text: see.Moment(v.Expires) + ", " + ui.Relative(v.Expires, s.Now())}
	}
	m.Facts = []ui.Def{ends}
	chip := func(name, value, label string) {
		m.Chips = append(m.Chips, ui.ButtonModel{Label: label, Submit: true, Name: name, Value: value, Attrs: templ.Attributes{"formnovalidate": true}})
	}
	latest := v.Lease.Latest
	for _, step := range leaseSteps {
		millis, _ := page.ParseLease(step.value)
		if end := s.later(v, time.Duration(millis)*time.Millisecond); latest.IsZero() || !end.After(latest) {
			chip("by", step.value, step.label)
		}
	}
	switch {
	case latest.IsZero() && !v.Expires.IsZero():
		chip("never", "1", "No expiry")
	case latest.After(v.Expires):
		chip("end", latest.UTC().Format(time.RFC3339Nano), "Maximum: "+see.In(latest).Format("Mon 2 Jan, 15:04"))
	}
	if !latest.IsZero() {
		most := ui.Def{Term: "Maximum", Text: see.Moment(latest)}
		switch v.Lease.Rule {
		case "step":
			most.Text += ": one change extends it by at most " + loom.Duration(v.Lease.Step.Milliseconds())
		case "maximum":
			most.Text += ", the maximum of the template"
		}
		m.Facts = append(m.Facts, most)
	}
	if day+clock == "" {
		end := see.In(v.Expires)
		if v.Expires.Before(s.Now()) {
			end = see.In(s.usualEnd(v))
		}
		day, clock = end.Format(time.DateOnly), end.Format("15:04")
	}
	m.Day = ui.FieldModel{Name: "date", Label: "Date", Kind: ui.FieldDate, Value: day, Error: errs.For("end"), Width: "s"}
	m.Clock = ui.FieldModel{Name: "time", Label: "Time", Kind: ui.FieldTime, Value: clock, Width: "xs"}
	m.Zone = "Time zone: " + see.In(s.Now()).Location().String()
	if len(errs.Items) > 0 {
		m.Day.Attrs = templ.Attributes{"data-focus": true}
	}
	m.Deleted = "Then Loom deletes the cluster, its machines and their disks."
	if v.Protected {
		m.Deleted = "The cluster is protected: Loom does not delete it then, but reminds you."
	}
	return m
}

// later is the end of a lease that is prolonged by some time.
func (s *Server) later(v clusters.ClusterView, by time.Duration) time.Time {
	end := v.Expires
	if now := s.Now(); end.IsZero() || end.Before(now) && v.Lease.Rule != "step" {
		end = now
	}
	return end.Add(by)
}

// usualEnd is the end of a lease that is prolonged by its step, at most the latest one.
func (s *Server) usualEnd(v clusters.ClusterView) time.Time {
	step := v.Lease.Step
	if step == 0 {
		step = time.Duration(v.Template.Administration.Lease.Initial) * time.Millisecond
	}
	if step == 0 {
		step = usualStep
	}
	end := s.later(v, step)
	if !v.Lease.Latest.IsZero() && end.After(v.Lease.Latest) {
		end = v.Lease.Latest
	}
	return end
}

// extend is the button that prolongs a lease by its step; none where that cannot be.
func (s *Server) extend(v clusters.ClusterView) clusterview.ExtendModel {
	if v.Allowed[loom.ChangeLease] != "" || v.Expires.IsZero() {
		return clusterview.ExtendModel{}
	}
	end := s.usualEnd(v)
	if !end.After(v.Expires) {
		return clusterview.ExtendModel{}
	}
	return clusterview.ExtendModel{Post: route.ClusterLease(v.ID), End: end}
}

// parseEnd reads the end of a lease, in the zone of now; the zero time is never.
func parseEnd(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if text == "never" || text == "0" {
		return time.Time{}, true
	}
	for _, layout := range leaseLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, true
		}
	}
	millis, ok := page.ParseLease(text)
	return now.Add(time.Duration(millis) * time.Millisecond), ok && millis > 0 && millis < (200*365*24*time.Hour).Milliseconds()
}

// readEnd reads the end that a form asks for: a date and a time, or end, which says more. The zero
// time is never.
func (s *Server) readEnd(form url.Values, v clusters.ClusterView, see ui.Viewer) (time.Time, string) {
	now := see.In(s.Now())
	switch {
	case form.Has("never"):
		return time.Time{}, ""
	case form.Has("by"):
		millis, ok := page.ParseLease(form.Get("by"))
		if !ok || millis <= 0 {
			return time.Time{}, "Choose a date and a time."
		}
		return s.later(v, time.Duration(millis)*time.Millisecond), ""
	case form.Has("end"):
		end, ok := parseEnd(form.Get("end"), now)
		if !ok {
			return end, "Enter a date such as 2026-12-24 14:00, or a time from now, such as 2 hours or 7d."
		}
		return end, ""
	}
	end, err := time.ParseInLocation(leaseLayouts[0], form.Get("date")+" "+form.Get("time"), now.Location())
	if err != nil {
		return end, "Choose a date and a time."
	}
	return end, ""
}

func (s *Server) clusterLease(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	see := ui.ViewerOf(r.Context())
	refuse := func(status int, message string) error {
		errs := ui.NewFormErrors("The lease is unchanged.", []loom.FieldError{{Field: "end", Message: message}})
		return s.showLease(w, r, actor, status, v, s.leaseModel(see, v, form.Get("date"), form.Get("time"), errs))
	}
	end, problem := s.readEnd(form, v, see)
	if problem != "" {
		return refuse(http.StatusUnprocessableEntity, problem)
	}
	shorter := !end.IsZero() && (v.Expires.IsZero() || end.Before(v.Expires.Truncate(time.Minute)))
	if shorter && !v.Protected && form.Get("sure") == "" && !end.Before(v.Created) && v.Allowed[loom.ChangeLease] == "" {
		return s.confirm(w, r, actor, http.StatusOK, v.Name, v.ID, s.shortenModel(see, v, end))
	}
	c, err := s.Clusters.ChangeExpiry(r.Context(), actor, v.ID, end)
	if errors.Is(err, loom.Invalid) || errors.Is(err, loom.Conflict) {
		e := loom.AsError(err)
		return refuse(httpx.PageStatus(e.Kind), e.Message)
	}
	if err != nil {
		return err
	}
	said := v.Name + " expires " + see.Moment(c.Expires) + "."
	if c.Expires.IsZero() {
		said = v.Name + " has no expiry."
	}
	return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: said})
}

// shortenModel asks before a cluster is deleted earlier than it would be.
func (s *Server) shortenModel(see ui.Viewer, v clusters.ClusterView, end time.Time) clusterview.ConfirmModel {
	gone, now := end.Add(v.Grace), s.Now()
	text := v.Name + " will be deleted immediately"
	if gone.After(now) {
		text = v.Name + " will be deleted on " + see.Moment(gone) + ", " + ui.Relative(gone, now)
	}
	title, button := "Delete "+v.Name+" earlier?", "Shorten lease"
	if v.Expires.IsZero() {
		title, button = "Set expiry of "+v.Name+"?", "Set expiry"
	}
	return clusterview.ConfirmModel{
		Title: title, Text: text + ", with its machines and their disks.", Danger: true,
		Post: route.ClusterLease(v.ID), Back: route.Cluster(v.ID), Button: button, Busy: "Saving…",
		Hidden: []clusterview.HiddenField{{Name: "end", Value: end.UTC().Format(time.RFC3339Nano)}, {Name: "sure", Value: "1"}},
	}
}
