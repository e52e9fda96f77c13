package system

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Above these a part of the installation is marked.
const (
	slowAnswer  = 250 * time.Millisecond
	wideSkew    = 2 * time.Second
	bucketLimit = 3 * time.Second
)

// part is a part of the installation: how it is since when, and what helps where it is not well.
type part struct {
	name   string
	state  ui.State
	since  time.Time
	detail string
	// action leads to what helps, where a page does.
	action, href string
}

// The states of parts. Bad is what keeps Loom from its work.
var (
	stateGood    = ui.State{Word: "Good", Icon: "check-circle", Tone: ui.ToneOK}
	stateWarning = ui.State{Word: "Warning", Icon: "alert", Tone: ui.ToneWarn}
	stateBad     = ui.State{Word: "Bad", Icon: "error", Tone: ui.ToneBad}
	stateNotUsed = ui.State{Word: "Not used", Icon: "circle", Tone: ui.ToneIdle}
)

// either is good if ok, else other.
func either(ok bool, other ui.State) ui.State {
	if ok {
		return stateGood
	}
	return other
}

// parts are all parts of the installation, as this process sees them.
func (s *Server) parts(r *http.Request, actor loom.Actor, figures loom.Figures, figuresFailed error) []part {
	status, failed := s.Processes.Status(r.Context(), actor)
	limited, cancel := context.WithTimeout(r.Context(), bucketLimit)
	defer cancel()
	bucket := s.Catalog.CheckBucket(limited)

	var parts []part
	if failed != nil {
		parts = append(parts, part{name: "Database", state: stateBad, detail: "It did not answer in time: " + page.CutShort(loom.AsError(failed).Message)})
	} else {
		parts = append(parts, databaseParts(status)...)
	}
	if d := figures.Database; d != nil {
		parts = append(parts, part{name: "Transactions", state: either(d.OldestTransaction < longTransaction, stateWarning),
			detail: ui.Count(d.Connections, "other connection", "other connections") + ", the oldest open transaction is " + ui.Duration(d.OldestTransaction) + " old"})
	}
	storage := part{name: "Storage", state: stateGood, detail: ui.Count(status.Resources, "version", "versions") + " of files, " + ui.Bytes(status.ResourceBytes)}
	switch {
	case bucket != nil:
		storage.state, storage.detail = stateBad, loom.AsError(bucket).Message
	case failed == nil && status.Resources == 0:
		storage.state, storage.detail = stateNotUsed, "No tenant has a file."
	}
	parts = append(parts, storage)
	parts = append(parts, processParts(figures, figuresFailed)...)
	parts = append(parts, queuesPart(figures, s.Now()), hooksPart(figures))
	parts = append(parts, localParts(status.Local)...)
	streams := part{name: "Event streams", state: stateNotUsed, detail: "No page listens to this process."}
	if n := s.Hub.Count(); n > 0 {
		streams.state, streams.detail = stateGood, ui.Count(n, "page listens", "pages listen")+" to this process"
	}
	return append(parts, streams, certificatePart(s.PublicURL), clientPart(s.ProxyUnknown), part{name: "Build", state: stateGood, detail: buildText(s.Version)})
}

// systemStatus tells how each part of the installation is, as this process sees it.
func (s *Server) systemStatus(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	figures, failed := s.Processes.Figures(r.Context())
	g := adminview.TableModel{ID: "status", Caption: "Status", Now: s.Now(), Columns: []ui.Column{{Label: "Part"}, {Label: "State"}, {Label: "Since"}, {Label: "Detail"}}}
	for _, p := range s.parts(r, actor, figures, failed) {
		g.Rows = append(g.Rows, []adminview.Cell{{Text: p.name}, {State: &p.state}, {Time: p.since}, {Text: p.detail}})
	}
	m := adminview.PageModel{Title: "Status", Intro: "The parts of the installation, as this process sees them. Programs ask /healthz whether it lives and /readyz whether it can work; figures are at /metrics.",
		Parts: []templ.Component{adminview.Table(g)}}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Status", route.SystemStatus()), m)
}

func databaseParts(s processes.Status) []part {
	database := part{name: "Database", state: either(s.Answer < slowAnswer, stateWarning), since: s.Started,
		detail: "PostgreSQL " + s.Version + ", " + ui.Bytes(s.Size) + ", answers within " + strconv.FormatInt(s.Answer.Milliseconds(), 10) + " ms"}
	if !s.Primary {
		database.state = stateBad
		database.detail += "; it is a standby and can only be read"
	}
	skew := "The database is " + ui.Duration(s.Skew.Abs()) + " ahead of this host."
	if s.Skew < 0 {
		skew = "The database is " + ui.Duration(s.Skew.Abs()) + " behind this host."
	}
	if s.Skew.Abs() < 100*time.Millisecond {
		skew = "This host and the database agree."
	}
	leader := part{name: "Queue leader", state: stateGood, since: s.LeaderSince, detail: s.Leader}
	if s.Leader == "" {
		leader.state, leader.detail = stateWarning, "No scheduler leads; due work is found late."
	}
	return []part{
		database,
		{name: "Migrations", state: either(s.Migration > 0, stateBad), detail: "schema " + strconv.FormatInt(s.Migration, 10) + ", River's " + strconv.FormatInt(s.River, 10)},
		{name: "Clocks", state: either(s.Skew.Abs() < wideSkew, stateWarning), detail: skew},
		leader,
	}
}

// processParts tells of each kind of process whether one is alive.
func processParts(f loom.Figures, failed error) []part {
	if failed != nil && f.Processes == nil {
		return []part{{name: "Processes", state: stateBad, detail: "They could not be read in time."}}
	}
	var parts []part
	for _, kind := range []string{loom.ProcessWeb, loom.ProcessScheduler, loom.ProcessProvisioner} {
		found := loom.ProcessFigure{Kind: kind}
		for _, p := range f.Processes {
			if p.Kind == kind {
				found = p
			}
		}
		p := part{name: page.Capital(kind) + " processes", state: either(found.LeaseAge < oldLease, stateWarning), since: found.Started,
			detail: strconv.Itoa(found.Count) + " alive, last heartbeat " + ui.Duration(found.LeaseAge) + " ago"}
		if found.Count == 0 {
			p = part{name: p.name, state: stateBad, detail: "None runs. Start one: loom " + kind}
		}
		parts = append(parts, p)
	}
	return parts
}

func queuesPart(f loom.Figures, now time.Time) part {
	p := part{name: "Queues", state: stateGood, detail: "No task waits for a worker."}
	oldest := time.Duration(0)
	for _, q := range f.Queues {
		oldest = max(oldest, q.Oldest)
		p.detail = "The oldest task waits " + ui.Duration(oldest) + "."
	}
	if oldest >= longWait {
		p.state, p.since, p.action, p.href = stateWarning, now.Add(-oldest), "Queues", route.SystemQueues()
	}
	return p
}

func hooksPart(f loom.Figures) part {
	h := f.Hooks
	if h == nil || *h == (loom.HookFigure{}) {
		return part{name: "Hooks", state: stateNotUsed, detail: "No tenant has an enabled hook."}
	}
	p := part{name: "Hooks", state: stateGood, detail: ui.Count(h.Enabled, "hook", "hooks") + ", " + ui.Count(h.Waiting, "delivery", "deliveries") + " waiting"}
	if h.Waiting > 0 {
		p.state, p.action, p.href = stateWarning, "Queues", route.SystemQueues()
	}
	return p
}

// localParts say of each host with local machines what they may have, and what it lacks.
func localParts(hosts []loom.LocalHost) []part {
	var parts []part
	for _, host := range hosts {
		p := part{name: "Local machines on " + host.Host, state: stateGood, detail: "The kernel keeps each to its limits; the most for one is " + host.Max + "."}
		if len(host.Lacks) > 0 {
			p.state, p.detail = stateWarning, strings.Join(host.Lacks, " ")
		}
		parts = append(parts, p)
	}
	return parts
}

// certificatePart says whose the certificate is: Loom serves plain HTTP, which is safe on its
// own host only.
func certificatePart(public string) part {
	u, err := url.Parse(public)
	switch {
	case err == nil && u.Scheme == "https":
		return part{name: "Certificate", state: stateGood, detail: "That of the proxy at " + public}
	case err == nil && isLoopback(u.Hostname()):
		return part{name: "Certificate", state: stateNotUsed, detail: "Loom serves plain HTTP to this host alone."}
	}
	return part{name: "Certificate", state: stateWarning, detail: "None: passwords cross the network in plain HTTP. Put a proxy with TLS before Loom and set LOOM_PUBLIC_URL to its address."}
}

// isLoopback reports whether a host of a URL is this host alone.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// clientPart says whether Loom can tell where requests come from.
func clientPart(proxyUnknown bool) part {
	if proxyUnknown {
		return part{name: "Client addresses", state: stateWarning, detail: "LOOM_PUBLIC_URL is set, LOOM_TRUSTED_PROXIES is not: every request counts as one from the proxy, in the audit log and in the limits of sign-in. Set LOOM_TRUSTED_PROXIES to the network of the proxy."}
	}
	return part{name: "Client addresses", state: stateGood, detail: "As the connection says, or a proxy named in LOOM_TRUSTED_PROXIES"}
}

// buildText names the release, the compiler and the revision.
func buildText(version string) string {
	text := "version " + version + ", " + runtime.Version() + " on " + runtime.GOOS + "/" + runtime.GOARCH
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text += ", revision " + setting.Value[:min(len(setting.Value), 12)]
		}
	}
	return text
}
