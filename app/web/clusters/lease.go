package clusters

import (
	"errors"
	"net/http"
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
	return s.showLease(w, r, actor, http.StatusOK, v, s.leaseModel(ui.ViewerOf(r.Context()), v, "", ui.FormErrors{}))
}

func (s *Server) showLease(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, m clusterview.LeaseModel) error {
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, status, clusterview.LeaseDialog(m))
	}
	page := clusterPage("Lease of "+v.Name, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Lease"})
	return s.Render(w, r, actor, status, page, clusterview.LeasePage(m))
}

func (s *Server) leaseModel(see ui.Viewer, v clusters.ClusterView, value string, errs ui.FormErrors) clusterview.LeaseModel {
	m := clusterview.LeaseModel{
		Cluster: v.ID, Name: v.Name, WhyNot: v.Allowed[loom.ChangeLease], Extend: s.extend(v),
		MayNever: v.Lease.Latest.IsZero(), IsForever: v.Expires.IsZero(),
	}
	ends := ui.Def{Term: "Ends", Text: "never"}
	if !v.Expires.IsZero() {
		ends = ui.Def{Term: "Ends", Value: ui.Time(v.Expires, s.Now())}
	}
	latest := ui.Def{Term: "Maximum", Text: "No expiry"}
	if !v.Lease.Latest.IsZero() {
		latest = ui.Def{Term: "Maximum", Text: see.Moment(v.Lease.Latest)}
		switch v.Lease.Rule {
		case "step":
			latest.Text += ", since one change prolongs by at most " + loom.Duration(v.Lease.Step.Milliseconds())
		case "maximum":
			latest.Text += ", the maximum of the template"
		}
	}
	m.Facts = []ui.Def{ends, latest}
	m.End = ui.FieldModel{Name: "end", Label: "New end", Value: value, Error: errs.For("end"), Placeholder: see.In(s.Now()).Add(usualStep).Format(leaseLayouts[0]), Width: "s",
		Help: "A date and time of " + see.In(s.Now()).Location().String() + ", or how long from now: 2 hours, 7d, 1d 6h.", Autocomplete: "off"}
	if len(errs.Items) > 0 {
		m.End.Attrs = templ.Attributes{"data-focus": true}
	}
	m.Deleted = "After its end the cluster is deleted, with its machines and all that is on them."
	return m
}

// extend is the button that prolongs a lease by its step; none where that cannot be.
func (s *Server) extend(v clusters.ClusterView) clusterview.ExtendModel {
	if v.Allowed[loom.ChangeLease] != "" || v.Expires.IsZero() {
		return clusterview.ExtendModel{}
	}
	step := v.Lease.Step
	if step == 0 {
		step = time.Duration(v.Template.Administration.Lease.Initial) * time.Millisecond
	}
	if step == 0 {
		step = usualStep
	}
	end := v.Expires
	if now := s.Now(); end.Before(now) && v.Lease.Rule != "step" {
		end = now
	}
	end = end.Add(step)
	if !v.Lease.Latest.IsZero() && end.After(v.Lease.Latest) {
		end = v.Lease.Latest
	}
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

func (s *Server) clusterLease(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	text, see := form.Get("end"), ui.ViewerOf(r.Context())
	if form.Has("never") {
		text = "never"
	}
	refuse := func(status int, message string) error {
		errs := ui.NewFormErrors("The lease is unchanged.", []loom.FieldError{{Field: "end", Message: message}})
		return s.showLease(w, r, actor, status, v, s.leaseModel(see, v, text, errs))
	}
	end, ok := parseEnd(text, see.In(s.Now()))
	if !ok {
		return refuse(http.StatusUnprocessableEntity, "Write a date such as 2026-12-24 14:00, or how long from now, such as 2 hours or 7d.")
	}
	c, err := s.Clusters.ChangeExpiry(r.Context(), actor, v.ID, end)
	if errors.Is(err, loom.Invalid) || errors.Is(err, loom.Conflict) {
		e := loom.AsError(err)
		return refuse(httpx.PageStatus(e.Kind), e.Message)
	}
	if err != nil {
		return err
	}
	said := "The lease of " + v.Name + " ends " + see.Moment(c.Expires) + "."
	if c.Expires.IsZero() {
		said = v.Name + " has no expiry."
	}
	return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: said})
}
