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

// systemStatus tells how each part of the installation is, as this process sees it.
func (s *Server) systemStatus(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	status, failed := s.Processes.Status(r.Context(), actor)
	figures, figuresFailed := s.Processes.Figures(r.Context())
	limited, cancel := context.WithTimeout(r.Context(), bucketLimit)
	defer cancel()
	bucket := s.Catalog.CheckBucket(limited)

	g := adminview.TableModel{ID: "status", Caption: "Status", Columns: []ui.Column{{Label: "Component, State"}}}
	if failed != nil {
		g.Rows = append(g.Rows, check("Database", false, "It did not answer in time: "+page.CutShort(loom.AsError(failed).Message)))
	} else {
		g.Rows = append(g.Rows, databaseRows(ui.ViewerOf(r.Context()), status)...)
	}
	if d := figures.Database; d != nil {
		g.Rows = append(g.Rows, check("Transactions", d.OldestTransaction < longTransaction, ui.Count(d.Connections, "other connection", "other connections")+", the oldest open transaction is "+ui.Duration(d.OldestTransaction)+" old"))
	}
	text := ui.Count(status.Resources, "version", "versions") + " of files, " + page.SizeOf(status.ResourceBytes)
	if bucket != nil {
		text = loom.AsError(bucket).Message
	}
	storage := check("Storage", bucket == nil, text)
	if bucket == nil && failed == nil && status.Resources == 0 {
		storage = unused("Storage", "no tenant has a file")
	}
	g.Rows = append(g.Rows, storage)
	g.Rows = append(g.Rows, processRows(figures, figuresFailed)...)
	g.Rows = append(g.Rows, localRows(status.Local)...)
	streams := unused("Event streams", "no page listens to this process")
	if n := s.Hub.Count(); n > 0 {
		streams = check("Event streams", true, ui.Count(n, "page listens", "pages listen")+" to this process")
	}
	g.Rows = append(g.Rows, streams, certificateRow(s.PublicURL), clientRow(s.ProxyUnknown), check("Build", true, buildText(s.Version)))

	m := adminview.PageModel{Title: "Status", Intro: "How the parts of the installation are, as this process sees them. Programs ask /healthz whether it lives and /readyz whether it can do its work; figures are at /metrics.",
		Parts: []templ.Component{adminview.Table(g)}}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Status", route.SystemStatus()), m)
}

func databaseRows(see ui.Viewer, s processes.Status) [][]adminview.Cell {
	answer := "PostgreSQL " + s.Version + ", " + page.SizeOf(s.Size) + ", answers within " + strconv.FormatInt(s.Answer.Milliseconds(), 10) + " ms"
	if !s.Primary {
		answer += "; it is a standby and can only be read"
	}
	skew := "the database is " + ui.Duration(s.Skew.Abs()) + " ahead of this host"
	if s.Skew < 0 {
		skew = "the database is " + ui.Duration(s.Skew.Abs()) + " behind this host"
	}
	if s.Skew.Abs() < 100*time.Millisecond {
		skew = "this host and the database agree"
	}
	leader := "no scheduler leads; due work is found late"
	if s.Leader != "" {
		leader = s.Leader + " leads, until " + see.Full(s.LeaderUntil) + " at first"
	}
	return [][]adminview.Cell{
		check("Database", s.Primary && s.Answer < slowAnswer, answer),
		check("Migrations", s.Migration > 0, "schema "+strconv.FormatInt(s.Migration, 10)+", River's "+strconv.FormatInt(s.River, 10)),
		check("Clocks", s.Skew.Abs() < wideSkew, skew),
		check("Queue leader", s.Leader != "", leader),
	}
}

// localRows say of each host with local machines what they may have, and what it lacks.
func localRows(hosts []loom.LocalHost) [][]adminview.Cell {
	var rows [][]adminview.Cell
	for _, host := range hosts {
		if len(host.Lacks) > 0 {
			rows = append(rows, check("Local machines on "+host.Host, false, strings.Join(host.Lacks, " ")))
			continue
		}
		rows = append(rows, check("Local machines on "+host.Host, true, "each is kept to its limits by the kernel; the most for one is "+host.Max))
	}
	return rows
}

// certificateRow says whose the certificate is: Loom serves plain HTTP, which is safe on its
// own host only.
func certificateRow(public string) []adminview.Cell {
	u, err := url.Parse(public)
	switch {
	case err == nil && u.Scheme == "https":
		return check("Certificate", true, "that of the proxy at "+public)
	case err == nil && isLoopback(u.Hostname()):
		return unused("Certificate", "Loom serves plain HTTP to this host alone")
	}
	return check("Certificate", false, "none: passwords cross the network in plain HTTP. Put a proxy with TLS before Loom and name its address in LOOM_PUBLIC_URL.")
}

// isLoopback reports whether a host of a URL is this host alone.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// clientRow says whether Loom can tell where requests come from.
func clientRow(proxyUnknown bool) []adminview.Cell {
	if proxyUnknown {
		return check("Client addresses", false, "LOOM_PUBLIC_URL is set, LOOM_TRUSTED_PROXIES is not: every request counts as one from the proxy, in the audit and in the limits of sign-in. Set LOOM_TRUSTED_PROXIES to the network of the proxy.")
	}
	return check("Client addresses", true, "as the connection says, or a proxy named in LOOM_TRUSTED_PROXIES")
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
