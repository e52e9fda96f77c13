package admin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// fileOf reads which version of which file a request is about; 0 for the one in use, else the
// newest.
func fileOf(values url.Values) (ref loom.ResourceRef, version int, err error) {
	ref = loom.ResourceRef{Kind: values.Get(adminview.FieldKind), Plugin: values.Get(adminview.FieldPlugin), Type: values.Get(adminview.FieldType), Name: values.Get(adminview.FieldName)}
	text := values.Get(adminview.FieldVersion)
	if text == "" {
		return ref, 0, nil
	}
	if version, err = loom.ParseNumber(text); err != nil || version < 1 {
		return ref, 0, noVersion(ref, text)
	}
	return ref, version, nil
}

func noVersion(ref loom.ResourceRef, version string) error {
	return loom.NewError(loom.NotFound, "There is no version “%.20s” of the file “%s”.", version, ref.Name)
}

// fileVersions are the versions of a file, the newest first, and the place of one of them.
func (s *Server) fileVersions(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) ([]loom.Resource, int, error) {
	if ref.Name == "" || ref.Type == "" {
		return nil, 0, noVersion(ref, "1")
	}
	versions, err := s.Catalog.Resources(ctx, actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(versions, func(a, b loom.Resource) int { return b.Version - a.Version })
	at := slices.IndexFunc(versions, func(v loom.Resource) bool { return v.Version == version || version == 0 && v.Live })
	if at < 0 && version == 0 && len(versions) > 0 {
		at = 0
	}
	if at < 0 {
		return nil, 0, noVersion(ref, strconv.Itoa(max(version, 1)))
	}
	return versions, at, nil
}

// adminFile shows a version of a file: its text in an editor, what uses it, the other versions,
// and how it differs from the one before.
func (s *Server) adminFile(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, version, err := fileOf(r.URL.Query())
	if err != nil {
		return err
	}
	m, err := s.fileModel(r, actor, ref, version)
	if err != nil {
		return err
	}
	return s.showFile(w, r, actor, http.StatusOK, m)
}

func (s *Server) showFile(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.FileModel) error {
	m.Check = catalog.CheckText(m.Name, m.Text)
	return s.Render(w, r, actor, status, fileFrame(m.Name), adminview.FilePage(m))
}

func fileFrame(last string) layout.Model {
	return page.AdminFrame(last, route.AdminResources(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Files", Href: route.AdminResources()}, ui.Crumb{Label: last})
}

// fileModel reads a version of a file with what is to be known of it.
func (s *Server) fileModel(r *http.Request, actor loom.Actor, ref loom.ResourceRef, version int) (adminview.FileModel, error) {
	m, err := s.fileFacts(r, actor, ref, version)
	if err != nil {
		return m, err
	}
	return m, s.readContent(r.Context(), actor, &m)
}

// readContent adds what a version holds, and how it differs from the one before. Unavailable
// while the bucket fails.
func (s *Server) readContent(ctx context.Context, actor loom.Actor, m *adminview.FileModel) (err error) {
	if m.Content, err = s.Catalog.ResourceContent(ctx, actor, m.Resource); err != nil {
		return err
	}
	m.Text = m.Content.Text
	at := slices.IndexFunc(m.Versions, func(v loom.Resource) bool { return v.Version == m.Resource.Version })
	if at+1 >= len(m.Versions) || m.Text == "" {
		return nil
	}
	before, err := s.Catalog.ResourceContent(ctx, actor, m.Versions[at+1])
	if err != nil || before.Text == "" {
		return err
	}
	budget := page.LineBudget(page.MaxDiffCells)
	m.Before = m.Versions[at+1].Version
	m.Changes, _ = budget.DiffLines(strings.Split(before.Text, "\n"), strings.Split(m.Text, "\n"), math.MaxInt)
	return nil
}

// fileFacts is the page of a version without what it holds.
func (s *Server) fileFacts(r *http.Request, actor loom.Actor, ref loom.ResourceRef, version int) (m adminview.FileModel, err error) {
	ctx := r.Context()
	versions, at, err := s.fileVersions(ctx, actor, ref, version)
	if err != nil {
		return m, err
	}
	m = adminview.FileModel{Resource: versions[at], Versions: versions, Now: s.Now()}
	uses, err := s.Catalog.ResourceUsers(ctx, actor, ref)
	if err != nil {
		return m, err
	}
	m.Use = uses[ref]
	if m.Clusters, err = s.Catalog.ResourceClusters(ctx, actor, ref, versions); err != nil {
		return m, err
	}
	m.Failed, err = s.failedTask(ctx, actor, r.URL.Query().Get(adminview.FieldTask), ref.Name)
	return m, err
}

// failureLines is how many lines of the log of a failed task are looked through.
const failureLines = 100

// failedTask is the task that an address names, with the line of a script that failed; nil for
// none, and for one that did not fail. One that waits for its next attempt has failed as well.
func (s *Server) failedTask(ctx context.Context, actor loom.Actor, text, script string) (*adminview.FailedTask, error) {
	ref, ok := loom.ParseTaskRef(text)
	if !ok {
		return nil, nil
	}
	t, err := s.Clusters.Task(ctx, actor, ref)
	retrying := err == nil && t.Status == loom.TaskReady && len(t.Attempts) > 0
	if errors.Is(err, loom.NotFound) || err == nil && t.Status != loom.TaskFailed && !retrying {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := s.Clusters.Cluster(ctx, actor, ref.Operation.Cluster)
	if err != nil {
		return nil, err
	}
	lines, _, err := s.Clusters.Log(ctx, actor, ref, clusters.LogInput{Tail: failureLines})
	if err != nil {
		return nil, err
	}
	f := &adminview.FailedTask{Task: t.Task, ClusterName: v.Name, WhyNot: v.Allowed[loom.ChangeRetry], Cause: t.Message,
		Title: page.Capital(strings.TrimSpace(string(t.Action)+" "+t.Service)) + " on " + ui.NodeNumber(t.NodeHostname)}
	if retrying {
		f.Retrying, f.WhyNot = true, ""
	}
	if v.Latest == nil || v.Latest.Ref != ref.Operation {
		f.WhyNot = "A later operation changed " + v.Name + "."
	}
	f.Line, f.Cause = failedLine(lines, script, f.Cause)
	return f, nil
}

// failedLine finds the line of a script that the log says went wrong, the last one, and what it
// says of it; else the given cause.
func failedLine(lines []loom.LogLine, script, cause string) (int, string) {
	// "web.sh: 14: configre: not found", "web.sh: line 14: …", `File "web.py", line 14`, "web.rb:14:in …"
	at := regexp.MustCompile(regexp.QuoteMeta(script) + `"?(?:: |, |:)(?:line )?(\d+)(?::\s*(.*)|$)`)
	for _, l := range slices.Backward(lines) {
		found := at.FindStringSubmatch(loom.PlainText(l.Text))
		if found == nil {
			continue
		}
		n, err := loom.ParseNumber(found[1])
		if err != nil {
			continue
		}
		said := []rune(found[2])
		if at := strings.LastIndex(found[2], script+": "); at >= 0 { // dash says the path twice
			said = []rune(found[2][at+len(script)+2:])
		}
		if len(said) > 0 {
			cause = string(said[:min(len(said), 200)])
		}
		return n, cause
	}
	return 0, cause
}

// adminFileCheck says what is wrong with the text of a file that is being written.
func (s *Server) adminFileCheck(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, adminview.TextCheck(catalog.CheckText(f.Get(adminview.FieldName), unixText(f.Get(adminview.FieldText)))))
}

// fileAct carries out an action on a version and says what was done.
func (s *Server) fileAct(w http.ResponseWriter, r *http.Request, act func(context.Context, loom.ResourceRef, int) error, said string) error {
	ref, version, err := fileOf(r.URL.Query())
	if err != nil {
		return err
	}
	if err := act(r.Context(), ref, version); err != nil {
		return err
	}
	to := adminview.File(ref, version)
	if strings.HasSuffix(r.URL.Path, "/"+adminview.FileDelete) {
		to = route.AdminResources() // the page is gone with the version
	}
	return s.Say(w, r, to, httpx.Flash{Tone: "ok", Text: strings.NewReplacer("{v}", ui.Version(version), "{name}", ref.Name).Replace(said)})
}

func (s *Server) adminFileStage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAct(w, r, func(ctx context.Context, ref loom.ResourceRef, version int) error {
		return s.Catalog.Stage(ctx, actor, ref, version)
	}, "Staged {name} {v}.")
}

func (s *Server) adminFileRelease(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAct(w, r, func(ctx context.Context, ref loom.ResourceRef, version int) error {
		return s.Catalog.Release(ctx, actor, ref, version)
	}, "Released {name} {v}.")
}

func (s *Server) adminFileWithdraw(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAct(w, r, func(ctx context.Context, ref loom.ResourceRef, version int) error {
		return s.Catalog.Withdraw(ctx, actor, ref, version)
	}, "Withdrew {name} {v}.")
}

func (s *Server) adminFileDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAct(w, r, func(ctx context.Context, ref loom.ResourceRef, version int) error {
		return s.Catalog.DeleteResource(ctx, actor, ref, version)
	}, "Deleted {name} {v}.")
}

func (s *Server) adminFileWithdrawAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAsk(w, r, actor, "Withdraw", adminview.AskModel{Act: adminview.FileWithdraw, Busy: "Withdrawing…", Text: "Tasks that need it will fail. Running tasks keep their files."})
}

func (s *Server) adminFileDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.fileAsk(w, r, actor, "Delete", adminview.AskModel{Act: adminview.FileDelete, Busy: "Deleting…", Text: "This can't be undone. The version number is not reused."})
}

// fileAsk asks whether to act on a version that exists, and names what uses the file.
func (s *Server) fileAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor, verb string, m adminview.AskModel) error {
	ref, version, err := fileOf(r.URL.Query())
	if err != nil {
		return err
	}
	versions, at, err := s.fileVersions(r.Context(), actor, ref, version)
	if err != nil {
		return err
	}
	uses, err := s.Catalog.ResourceUsers(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	m.Resource, m.Use = versions[at], uses[ref]
	m.Button = verb + " " + ref.Name + " " + ui.Version(m.Version)
	return s.Confirm(w, r, actor, fileFrame(m.Button+"?"), adminview.FileAsk(m))
}
