package admin

import (
	"errors"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// maxUploadField bounds a field before the file, maxUploadText the text that is
// written in place of one; in bytes.
const (
	maxUploadField = 4 << 10
	maxUploadText  = 256 << 10
)

// adminResourceUpload streams the file of a form to the bucket, and stages it if
// asked to.
func (s *Server) adminResourceUpload(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	fields, file, err := uploadParts(r)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(fields.Get(adminview.FieldName))
	if name == "" && file != nil {
		name = filepath.Base(file.FileName())
	}
	content, err := uploadContent(r, fields, file)
	var resource loom.Resource
	if err == nil {
		resource, err = s.upload(r, actor, fields.Get(adminview.FieldPlugin), name, content)
	}
	if err == nil && fields.Get(adminview.FieldStage) == "true" {
		err = s.Catalog.Stage(r.Context(), actor, resource.ResourceRef, resource.Version)
	}
	if errs, status, ok := page.FormErrors(err, "The file was not stored."); ok || errors.Is(err, loom.NotFound) {
		if !ok {
			errs = ui.NewFormErrors("The file was not stored.", []loom.FieldError{{Field: adminview.FieldPlugin, Message: loom.AsError(err).Message}})
			status = http.StatusUnprocessableEntity
		}
		m := adminview.ResourcesModel{Name: fields.Get(adminview.FieldName), Text: fields.Get(adminview.FieldText), Stage: fields.Get(adminview.FieldStage) == "true", Errors: errs}
		return s.resourcesPage(w, r, actor, status, m, fields.Get(adminview.FieldPlugin))
	}
	if err != nil {
		return err
	}
	text := "Stored version " + strconv.Itoa(resource.Version) + " of " + resource.Name + "."
	if fields.Get(adminview.FieldStage) == "true" {
		text += " It is staged; release it to put it in use."
	}
	return s.Say(w, r, route.AdminResources(), httpx.Flash{Tone: "ok", Text: text})
}

// uploadParts reads a form up to its file, which it leaves to be streamed; nil
// when none was chosen.
func uploadParts(r *http.Request) (url.Values, *multipart.Part, error) {
	httpx.Stored(r)
	reader, err := r.MultipartReader()
	if err != nil {
		return nil, nil, loom.NewError(loom.Invalid, "The form could not be read; it must be sent as multipart/form-data.")
	}
	fields := url.Values{}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, nil, httpx.Whole(r)
		}
		if err != nil {
			return nil, nil, httpx.BodyError(err, "The upload broke off; try again.")
		}
		if part.FormName() == adminview.FieldFile {
			if part.FileName() == "" {
				_, err := io.Copy(io.Discard, httpx.WholePart(r, part))
				return fields, nil, err
			}
			return fields, part, nil
		}
		limit := int64(maxUploadField)
		if part.FormName() == adminview.FieldText {
			limit = maxUploadText
		}
		value, err := io.ReadAll(io.LimitReader(part, limit+1))
		if err != nil {
			return nil, nil, httpx.BodyError(err, "The upload broke off; try again.")
		}
		if int64(len(value)) > limit {
			return nil, nil, loom.NewError(loom.Invalid, "The field “%s” holds more than %s; upload it as a file.", part.FormName(), page.SizeOf(limit))
		}
		fields.Set(part.FormName(), string(value))
	}
}

// uploadContent is the file, or the text in place of it. Browsers send lines that end
// in CR LF, which no script does.
func uploadContent(r *http.Request, fields url.Values, file *multipart.Part) (io.Reader, error) {
	text := strings.ReplaceAll(fields.Get(adminview.FieldText), "\r\n", "\n")
	switch {
	case file != nil && strings.TrimSpace(text) != "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldText, Message: "There is a text and a file; give one of them."}})
	case file != nil:
		return httpx.WholePart(r, file), nil
	case strings.TrimSpace(text) == "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldFile, Message: "Write a text, or choose a file."}})
	case strings.TrimSpace(fields.Get(adminview.FieldName)) == "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldName, Message: "Enter a name, such as hello.sh."}})
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return strings.NewReader(text), nil
}

func (s *Server) upload(r *http.Request, actor loom.Actor, plugin, name string, content io.Reader) (loom.Resource, error) {
	parts := strings.Split(plugin, "/")
	if len(parts) != 3 {
		return loom.Resource{}, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldPlugin, Message: "Choose the plugin that uses the file."}})
	}
	ref := loom.ResourceRef{Kind: parts[0], Plugin: parts[1], Type: parts[2], Name: name}
	return s.Catalog.UploadChecked(r.Context(), actor, ref, content, catalog.DefaultMaxUpload)
}

// resourceRef reads which version of which resource a request is about.
func resourceRef(values url.Values) (ref loom.ResourceRef, version int, shown adminview.ResourceRef, err error) {
	shown = adminview.ResourceRef{
		Kind: values.Get(adminview.FieldKind), Plugin: values.Get(adminview.FieldPlugin), Type: values.Get(adminview.FieldType),
		Name: values.Get(adminview.FieldName), Version: values.Get(adminview.FieldVersion), Back: values.Get(adminview.FieldBack),
	}
	version, err = loom.ParseNumber(shown.Version)
	if err != nil || version < 1 {
		return ref, 0, shown, loom.NewError(loom.NotFound, "There is no version “%s” of the resource “%s”.", shown.Version, shown.Name)
	}
	return loom.ResourceRef{Kind: shown.Kind, Plugin: shown.Plugin, Type: shown.Type, Name: shown.Name}, version, shown, nil
}

// resourceAct carries out an action on a version and says what was done.
func (s *Server) resourceAct(w http.ResponseWriter, r *http.Request, act func(loom.ResourceRef, int) error, said string) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	ref, version, shown, err := resourceRef(f)
	if err != nil {
		return err
	}
	if err := act(ref, version); err != nil {
		return err
	}
	text := strings.NewReplacer("{v}", strconv.Itoa(version), "{name}", ref.Name).Replace(said)
	to := shown.Page(route.AdminResources())
	if r.URL.Path == adminview.ResourceDelete() {
		to = route.AdminResources() // the page of the version is gone with it
	}
	return s.Say(w, r, to, httpx.Flash{Tone: "ok", Text: text})
}

func (s *Server) adminResourceStage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.Stage(r.Context(), actor, ref, version)
	}, "Staged version {v} of {name}; release it to put it in use.")
}

func (s *Server) adminResourceRecall(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.Recall(r.Context(), actor, ref, version)
	}, "Withdrew version {v} of {name}. The next release takes it out of use.")
}

func (s *Server) adminResourceDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.DeleteResource(r.Context(), actor, ref, version)
	}, "Deleted version {v} of {name}.")
}

func (s *Server) adminResourceRecallAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAsk(w, r, actor, "Withdraw", adminview.ResourceConfirmModel{
		Action: adminview.ResourceRecall(), Busy: "Withdrawing…",
		Text: "The next release takes it out of use. Tasks that need it will then fail.",
	})
}

func (s *Server) adminResourceDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAsk(w, r, actor, "Delete", adminview.ResourceConfirmModel{
		Action: adminview.ResourceDelete(), Busy: "Deleting…", Text: "This can't be undone. The version number is not reused.",
	})
}

// resourceAsk asks whether to act on a version that exists.
func (s *Server) resourceAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor, verb string, m adminview.ResourceConfirmModel) error {
	ref, version, shown, err := resourceRef(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.resourceExists(r, actor, ref, version); err != nil {
		return err
	}
	m.Ref = shown
	if m.Users, err = s.resourceUsers(r, actor, ref); err != nil {
		return err
	}
	m.Button = verb + " version " + shown.Version + " of " + shown.Name
	return s.Confirm(w, r, actor, resourceAskFrame(m.Button, verb), adminview.ResourceConfirmForm(m, shown.Page(route.AdminResources())))
}

// resourceUsers are what names a resource.
func (s *Server) resourceUsers(r *http.Request, actor loom.Actor, ref loom.ResourceRef) ([]adminview.Use, error) {
	found, err := s.Catalog.ResourceUsers(r.Context(), actor, ref)
	if err != nil {
		return nil, err
	}
	var users []adminview.Use
	for _, u := range found.Entries {
		users = append(users, adminview.Use{Kind: u.Kind.Word(), Name: u.Name, Href: route.AdminEntry(u.Kind, u.Name)})
	}
	for _, r := range found.Files {
		users = append(users, adminview.Use{Kind: loom.FileWord(r.Type), Name: r.Name, Href: page.ResourceURL(r)})
	}
	return users, nil
}

func resourceAskFrame(title, verb string) layout.Model {
	return page.AdminFrame(title, route.AdminResources(), ui.Crumb{Label: "Admin", Href: route.Admin()},
		ui.Crumb{Label: "Files", Href: route.AdminResources()}, ui.Crumb{Label: verb})
}

func (s *Server) resourceExists(r *http.Request, actor loom.Actor, ref loom.ResourceRef, version int) error {
	versions, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Version == version {
			return nil
		}
	}
	return noResource(ref, version)
}

// adminResourceSync makes live what is slated, and says what that was.
func (s *Server) adminResourceSync(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	before, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	if err := s.Catalog.Sync(r.Context(), actor); err != nil {
		return err
	}
	flash := httpx.Flash{Tone: "ok", Text: "Nothing to release."}
	if staged, recalled := waiting(before); staged+recalled > 0 {
		flash.Text = "Released: " + syncText(staged, recalled) + "."
	}
	return s.Say(w, r, adminview.ResourceSync(), flash)
}

func resourceCrumbs(last string) []ui.Crumb {
	return []ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Files", Href: route.AdminResources()}, {Label: last}}
}

// adminResource shows a version of a resource: what is in it, the other versions,
// and how it differs from the one before.
func (s *Server) adminResource(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, version, _, err := resourceRef(r.URL.Query())
	if err != nil {
		return err
	}
	versions, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return err
	}
	slices.SortFunc(versions, func(a, b loom.Resource) int { return b.Version - a.Version })
	at := slices.IndexFunc(versions, func(v loom.Resource) bool { return v.Version == version })
	if at < 0 {
		return noResource(ref, version)
	}
	shown := versions[at]
	content, err := s.Catalog.ResourceContent(r.Context(), actor, shown)
	if err != nil {
		return err
	}
	users, err := s.resourceUsers(r, actor, ref)
	if err != nil {
		return err
	}
	state := ui.ResourceState(shown.Status())
	m := adminview.PageModel{Title: ref.Name + ", version " + strconv.Itoa(version), State: &state}
	if content.Text != "" {
		m.Actions = []ui.ButtonModel{{Label: "Write a new version", Icon: "edit", Href: page.ResourceQuery(shown, route.AdminResources()) + "#upload"}}
	}
	m.Parts = []templ.Component{ui.Definitions([]ui.Def{
		{Term: "Type", Text: ref.Plugin + " · " + ref.Type}, {Term: "Size", Text: page.SizeOf(shown.Size)}, {Term: "SHA-256", Value: ui.CopyText(shown.SHA256, "checksum")},
		{Term: "Format", Text: shown.Format}, {Term: "Uploaded", Value: ui.Time(shown.Created, s.Now())}, {Term: "By", Text: string(shown.Author)},
		{Term: "Used by", Value: adminview.ResourceUsers(users)},
	}), ui.Banner(ui.BannerModel{Tone: ui.ToneIdle, Text: resourceHelp[shown.Status()]}), adminview.ResourceActions(versionRow(shown)), resourceContent(content)}
	if at+1 < len(versions) && content.Text != "" {
		before, err := s.Catalog.ResourceContent(r.Context(), actor, versions[at+1])
		if err != nil {
			return err
		}
		if before.Text != "" {
			m.Parts = append(m.Parts, resourceDiff(versions[at+1].Version, before.Text, content.Text))
		}
	}
	uses, err := s.Catalog.ResourceClusters(r.Context(), actor, ref, versions)
	if err != nil {
		return err
	}
	if ref.Kind == string(loom.KindAutomatorType) {
		m.Parts = append(m.Parts, usesCard(versions, uses))
	}
	m.Parts = append(m.Parts, s.versionGrid(versions, version))
	return s.Sheet(w, r, actor, http.StatusOK, page.AdminFrame(ref.Name, route.AdminResources(), resourceCrumbs(ref.Name)...), m)
}

// resourceHelp says what a state means and what the next sync does.
var resourceHelp = map[loom.ResourceStatus]string{
	loom.ResourceInactive: "Inactive: not in use. Stage it to put it in use.",
	loom.ResourceStaged:   "Staged: the next release puts it in use and replaces the current version.",
	loom.ResourceActive:   "In use: new tasks get it. Withdraw it, or stage another version, to take it out of use with the next release.",
	loom.ResourceRecalled: "Withdrawn: in use until the next release.",
}

func resourceContent(c catalog.ResourceContent) templ.Component {
	var parts []templ.Component
	if c.Odd != "" {
		parts = append(parts, ui.Banner(ui.BannerModel{Tone: ui.ToneWarn, Text: c.Odd}))
	}
	switch {
	case c.Secret:
		parts = append(parts, adminview.Text("It is sealed and never shown."))
	case c.Binary:
		parts = append(parts, adminview.Text("It is no text, so it is not shown."))
	case c.Large:
		parts = append(parts, adminview.Text("It is too large to be shown."))
	case c.Text != "":
		parts = append(parts, ui.Code(ui.CodeModel{ID: "content", Label: "Content", Text: c.Text}))
	case len(c.Files) > 0:
		grid := adminview.TableModel{ID: "files", Caption: "Files of the archive", Columns: []ui.Column{{Label: "Name"}, {Label: "Size", Numeric: true}, {Label: "Mode"}}}
		for _, f := range c.Files {
			grid.Rows = append(grid.Rows, []adminview.Cell{{Text: f.Name, Mono: true}, {Text: page.SizeOf(f.Size)}, {Text: f.Mode, Mono: true}})
		}
		if c.More {
			grid.Pages.Text = "The first " + strconv.Itoa(len(c.Files)) + " files"
		}
		parts = append(parts, adminview.Table(grid))
	case c.Odd == "":
		parts = append(parts, adminview.Text("It is empty."))
	}
	return adminview.Card("content-title", "Content", parts...)
}

// usesCard says which clusters use which version of a file.
func usesCard(versions []loom.Resource, uses map[int][]catalog.ResourceCluster) templ.Component {
	grid := adminview.TableModel{ID: "uses", Caption: "Clusters by version", ShowCaption: true, Columns: []ui.Column{{Label: "Version"}, {Label: "Nodes", Numeric: true}, {Label: "Clusters"}},
		Empty: ui.EmptyModel{Icon: "cluster", Text: "No cluster is known to use it."}}
	add := func(version int, name adminview.Cell) {
		nodes := 0
		for _, use := range uses[version] {
			nodes += use.Nodes
		}
		if nodes > 0 {
			grid.Rows = append(grid.Rows, []adminview.Cell{name, {Text: strconv.Itoa(nodes)}, {Part: adminview.ResourceClusters(useLinks(uses[version]))}})
		}
	}
	for _, v := range versions {
		add(v.Version, adminview.Cell{Text: strconv.Itoa(v.Version), Href: page.ResourceURL(v)})
	}
	add(0, adminview.Cell{Text: "a deleted version"})
	return adminview.Table(grid)
}

// maxUses is how many clusters of a version are named before the rest is counted.
const maxUses = 50

func useLinks(uses []catalog.ResourceCluster) (links []adminview.Use) {
	for i, use := range uses {
		if i == maxUses {
			return append(links, adminview.Use{Name: "and " + strconv.Itoa(len(uses)-i) + " more"})
		}
		links = append(links, adminview.Use{Name: use.Name, Href: route.Cluster(use.Cluster), Field: ui.Count(use.Nodes, "node", "nodes")})
	}
	return links
}

func (s *Server) versionGrid(versions []loom.Resource, shown int) templ.Component {
	grid := adminview.TableModel{ID: "versions", Caption: "Versions", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Version"}, {Label: "State"}, {Label: "Size", Numeric: true}, {Label: "SHA-256"}, {Label: "Uploaded"}, {Label: "By"}, {Label: "Actions", LabelHidden: true}}}
	for _, v := range versions {
		state := ui.ResourceState(v.Status())
		first := adminview.Cell{Text: strconv.Itoa(v.Version), Href: page.ResourceURL(v)}
		if v.Version == shown {
			first = adminview.Cell{Text: strconv.Itoa(v.Version), Sub: "this one"}
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{first, {State: &state}, {Text: page.SizeOf(v.Size)}, {Text: v.SHA256[:min(12, len(v.SHA256))], Mono: true}, {Time: v.Created}, {Text: string(v.Author)}, {Part: adminview.ResourceActions(versionRow(v))}})
	}
	return adminview.Table(grid)
}

// versionRow is what can be done with a version on its page.
func versionRow(v loom.Resource) adminview.ResourceRow {
	slated := 0
	if v.Slated {
		slated = v.Version
	}
	return resourceRow(v, slated, adminview.BackShow)
}

func resourceDiff(before int, old, fresh string) templ.Component {
	budget := page.LineBudget(page.MaxDiffCells)
	lines, _ := budget.DiffLines(strings.Split(old, "\n"), strings.Split(fresh, "\n"), math.MaxInt)
	if len(lines) == 0 {
		return adminview.Card("diff-title", "Against version "+strconv.Itoa(before), adminview.Text("The text is the same."))
	}
	return adminview.Card("diff-title", "Against version "+strconv.Itoa(before), ui.Code(ui.CodeModel{ID: "diff", Label: "Changed lines: + added, − removed", Text: strings.Join(lines, "\n")}))
}

// adminResourceSyncAsk shows what a sync would do, and who has fetched what.
func (s *Server) adminResourceSyncAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	set, fetches, err := s.Catalog.Fetched(r.Context(), actor)
	if err != nil {
		return err
	}
	m := adminview.PageModel{Title: "Release files", Intro: "A release puts all staged versions in use and takes all withdrawn ones out of use, at once. Running tasks keep their files."}
	m.Parts = []templ.Component{syncGrid(resources)}
	if staged, recalled := waiting(resources); staged+recalled > 0 {
		m.Parts = append(m.Parts, adminview.Act(adminview.ResourceSync(), ui.ButtonModel{Label: "Release files", Busy: "Releasing…", Icon: "rotate", Kind: ui.Primary, Submit: true}))
	}
	m.Parts = append(m.Parts, s.fetchGrid(set, fetches))
	return s.LiveSheet(w, r, actor, route.TopicTenant(), page.AdminFrame("Release", route.AdminResources(), resourceCrumbs("Release")...), m)
}

// syncGrid lists what changes by name: the version in use now, and that after.
func syncGrid(resources []loom.Resource) templ.Component {
	type change struct{ now, then *loom.Resource }
	byRef, order := map[loom.ResourceRef]*change{}, []loom.ResourceRef{}
	for i, r := range resources {
		if !r.Live && !r.Slated {
			continue
		}
		c := byRef[r.ResourceRef]
		if c == nil {
			c = &change{}
			byRef[r.ResourceRef] = c
			order = append(order, r.ResourceRef)
		}
		if r.Live {
			c.now = &resources[i]
		}
		if r.Slated {
			c.then = &resources[i]
		}
	}
	grid := adminview.TableModel{ID: "outcome", Caption: "Changes of the release", ShowCaption: true, Columns: []ui.Column{{Label: "File"}, {Label: "Change"}, {Label: "Version"}},
		Empty: ui.EmptyModel{Icon: "check-circle", Text: "Nothing to release.", More: "Files", MoreHref: route.AdminResources()}}
	for _, ref := range order {
		c := byRef[ref]
		row := []adminview.Cell{{Text: ref.Name, Mono: true, Sub: ref.Plugin + " · " + ref.Type}, {}, {}}
		switch {
		case c.now == c.then:
			continue
		case c.now == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Added", Icon: "plus", Tone: ui.ToneOK}, strconv.Itoa(c.then.Version)
			row[2].Href = page.ResourceURL(*c.then)
		case c.then == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Removed", Icon: "minus", Tone: ui.ToneBad}, strconv.Itoa(c.now.Version)
			row[2].Href = page.ResourceURL(*c.now)
		default:
			row[1].State, row[2].Text = &ui.State{Word: "Replaced", Icon: "rotate", Tone: ui.ToneWarn}, strconv.Itoa(c.now.Version)+" → "+strconv.Itoa(c.then.Version)
			row[2].Href = page.ResourceURL(*c.then)
		}
		grid.Rows = append(grid.Rows, row)
	}
	return adminview.Table(grid)
}

func (s *Server) fetchGrid(set int, fetches []catalog.ResourceFetch) templ.Component {
	grid := adminview.TableModel{ID: "fetches", Caption: "Who has fetched set " + strconv.Itoa(set), ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Host of provisioners"}, {Label: "State"}, {Label: "Has set", Numeric: true}, {Label: "Fetched"}},
		Empty:   ui.EmptyModel{Icon: "server", Text: "No provisioner has fetched anything yet; each does with its next task."}}
	for _, f := range fetches {
		state := ui.State{Word: "Has it", Icon: "check-circle", Tone: ui.ToneOK}
		if f.Set < set {
			state = ui.State{Word: "With its next task", Icon: "clock", Tone: ui.ToneIdle}
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: f.Host, Mono: true}, {State: &state}, {Text: strconv.Itoa(f.Set)}, {Time: f.Time}})
	}
	return adminview.Table(grid)
}
