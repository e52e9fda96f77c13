package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// maxBulk is how many clusters are taken at once: each is previewed and changed for
// itself.
const maxBulk = 200

// chosen are the clusters that something is to be done to.
type chosen struct {
	items []loom.ClusterSummary
	// all says that they are those that match a filter, more that there are others that
	// were left out.
	all, more bool
	back      string
}

// readChosen reads which clusters were selected: those with the ids, or with all=1 what
// matches the filters. What the actor may not see is not among them.
func (s *Server) readChosen(r *http.Request, actor loom.Actor) (chosen, error) {
	v := r.URL.Query()
	q := readListQuery(v)
	c := chosen{all: v.Get("all") != "", back: listURL(q)}
	in := q.input(maxBulk)
	in.Page = loom.Page{Limit: maxBulk, Sort: "name"}
	if !c.all {
		ids := page.ReadIDs(v["id"], maxBulk+1)
		if len(ids) == 0 {
			return c, nil
		}
		c.more = len(ids) > maxBulk
		in = clusters.ListInput{Page: in.Page, IDs: ids}
	}
	list, err := s.Clusters.Clusters(r.Context(), actor, in)
	c.items = list.Items
	c.more = c.more || list.Next != ""
	return c, err
}

// warning says what was left out.
func (c chosen) warning() string {
	if !c.more {
		return ""
	}
	return fmt.Sprintf("More than %d clusters are selected. These are the first %d by name; do the same again for the others, or narrow the list first.", maxBulk, maxBulk)
}

// bulkKey names a cluster with the revision that was shown, so that nothing is done to
// one that has changed since.
func bulkKey(id loom.ClusterID, revision int) string {
	return id.String() + "." + strconv.Itoa(revision)
}

func readBulkKey(text string) (id loom.ClusterID, revision int, ok bool) {
	first, second, _ := strings.Cut(text, ".")
	id, ok = loom.ParseClusterID(first)
	revision, err := loom.ParseNumber(second)
	return id, revision, ok && err == nil
}

func bulkRow(c loom.ClusterSummary) sharedview.BulkRow {
	return sharedview.BulkRow{Key: bulkKey(c.ID, c.Revision), Name: c.Name, Href: route.Cluster(c.ID), State: ui.ClusterState(c.Status)}
}

func nothingChosen(m *sharedview.BulkModel) {
	m.Nothing = "No cluster is selected. Tick some in the list first."
}

// bulkDelete shows what deleting the selected clusters would do, each previewed.
func (s *Server) bulkDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, err := s.readChosen(r, actor)
	if err != nil {
		return err
	}
	return s.showBulkDelete(w, r, actor, http.StatusOK, c, "")
}

func (s *Server) showBulkDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, c chosen, typed string) error {
	m := sharedview.BulkModel{Noun: "cluster", Action: route.ClustersBulk("delete"), Title: "Delete clusters", Back: c.back, Warning: c.warning(),
		Intro:   "Deletes the machines and their disks. This can’t be undone. Operations and logs stay readable.",
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Nodes", Numeric: true}, {Label: "Tasks", Numeric: true}, {Label: "Services"}}}
	nodes, tasks, doable := 0, 0, 0
	for _, item := range c.items {
		row := bulkRow(item)
		view, err := s.Clusters.PreviewUnsaved(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: item.ID})
		switch e := loom.AsError(err); {
		case err == nil && len(view.Missing) > 0:
			row.Key, row.WhyNot = "", "Its provider asks for credentials; delete it from its own page."
		case err == nil:
			doable++
			nodes += len(view.Nodes)
			tasks += len(view.Plan.Tasks)
			row.Cells = []string{strconv.Itoa(len(view.Nodes)), strconv.Itoa(len(view.Plan.Tasks)), strings.Join(view.Services, ", ")}
		case e.Kind == loom.NotFound || e.Kind == loom.Conflict || e.Kind == loom.Invalid || e.Kind == loom.Forbidden:
			row.Key, row.WhyNot = "", strings.Replace(e.Message, clusters.AbortFirst, " Its own page offers “Abort and delete”.", 1)
		default:
			return err
		}
		m.Rows = append(m.Rows, row)
	}
	if len(c.items) == 0 {
		nothingChosen(&m)
	}
	if doable > 0 {
		m.Confirm = deleteWords(doable)
		m.Facts = []ui.Def{{Term: "Clusters", Text: strconv.Itoa(doable)}, {Term: "Nodes", Text: strconv.Itoa(nodes)}, {Term: "Tasks", Text: strconv.Itoa(tasks)}}
		f := ui.FieldModel{Name: "confirm", Label: "Type “" + m.Confirm + "” to confirm", Value: typed, Autocomplete: "off", Width: "m"}
		if status != http.StatusOK {
			f.Error = "Type “" + m.Confirm + "” exactly."
			m.Errors = ui.NewFormErrors("Nothing was deleted.", []loom.FieldError{{Field: "confirm", Message: f.Error}})
		}
		m.Fields = []ui.FieldModel{f}
		m.Button = ui.ButtonModel{Label: ui.Capital(m.Confirm), Busy: "Deleting…", Kind: ui.DangerFilled, Submit: true, Attrs: map[string]any{"data-confirm": true}}
	}
	return s.bulkPage(w, r, actor, status, m)
}

// deleteWords is what has to be typed.
func deleteWords(n int) string { return "delete " + ui.Count(n, "cluster", "clusters") }

func (s *Server) bulkPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m sharedview.BulkModel) error {
	return s.Render(w, r, actor, status, clusterPage(m.Title, "Clusters", ui.Crumb{Label: m.Title}), sharedview.BulkPage(m))
}

// readBulk reads a form about several clusters: those that are as they were shown, and
// a row for each that is not.
func (s *Server) readBulk(w http.ResponseWriter, r *http.Request, actor loom.Actor) (f url.Values, c chosen, changed []sharedview.DoneRow, err error) {
	if f, err = page.ReadForm(w, r); err != nil {
		return nil, c, nil, err
	}
	c.back = route.Local(f.Get("back"), route.Clusters())
	shown := map[loom.ClusterID]int{}
	var ids []loom.ClusterID
	for _, key := range f["id"] {
		if id, revision, ok := readBulkKey(key); ok && len(ids) < maxBulk && !slices.Contains(ids, id) {
			ids = append(ids, id)
			shown[id] = revision
		}
	}
	now, err := s.Summaries(r.Context(), actor, ids)
	for _, id := range ids {
		item, there := now[id]
		switch {
		case !there:
			changed = append(changed, sharedview.DoneRow{Name: id.String(), Href: route.Cluster(id), Text: "It no longer exists."})
		case item.Revision != shown[id]:
			changed = append(changed, sharedview.DoneRow{Name: item.Name, Href: route.Cluster(id), Text: "It has changed since it was shown, so nothing was done to it."})
		default:
			c.items = append(c.items, item)
		}
	}
	return f, c, changed, err
}

// bulkDeleteDo deletes the clusters that were shown, once that was typed.
func (s *Server) bulkDeleteDo(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, c, rows, err := s.readBulk(w, r, actor)
	if err != nil {
		return err
	}
	if typed := strings.TrimSpace(f.Get("confirm")); typed != deleteWords(len(c.items)+len(rows)) {
		return s.showBulkDelete(w, r, actor, http.StatusUnprocessableEntity, c, typed)
	}
	return s.bulkEach(w, r, actor, "Delete clusters", "The deletion of %s has begun.", c, rows, func(item loom.ClusterSummary) error {
		_, err := s.Clusters.Delete(r.Context(), actor, item.ID, clusters.DeleteInput{})
		return err
	})
}

// refused says that one of several could not be done, which is no reason to stop.
func refused(err error) bool {
	return errors.Is(err, loom.NotFound) || errors.Is(err, loom.Conflict) || errors.Is(err, loom.Invalid) || errors.Is(err, loom.Forbidden) || errors.Is(err, loom.Exhausted)
}

// each does something to each of the clusters that are as they were shown: done are those, left
// the others, with the reason.
func (c chosen) each(changed []sharedview.DoneRow, do func(loom.ClusterSummary) error) (done []loom.ClusterID, left []sharedview.DoneRow, err error) {
	left = changed
	for _, item := range c.items {
		switch err := do(item); {
		case err == nil:
			done = append(done, item.ID)
		case refused(err):
			left = append(left, sharedview.DoneRow{Name: item.Name, Href: route.Cluster(item.ID), Text: loom.AsError(err).Message})
		default:
			return nil, nil, err
		}
	}
	return done, left, nil
}

// bulkEach does something to each of the clusters, and shows the results.
func (s *Server) bulkEach(w http.ResponseWriter, r *http.Request, actor loom.Actor, title, said string, c chosen, changed []sharedview.DoneRow, do func(loom.ClusterSummary) error) error {
	done, left, err := c.each(changed, do)
	if err != nil {
		return err
	}
	return s.bulkDone(w, r, actor, title, said, c.back, done, left)
}

// bulkDone shows the changed clusters as they are now, and the others with the reason.
func (s *Server) bulkDone(w http.ResponseWriter, r *http.Request, actor loom.Actor, title, said, back string, done []loom.ClusterID, left []sharedview.DoneRow) error {
	now, err := s.namedTable(r, actor, done)
	if err != nil {
		return err
	}
	m := sharedview.DoneModel{Noun: "cluster", Title: title, Rows: left, Back: back, Summary: ui.BannerModel{Tone: ui.ToneOK, Text: fmt.Sprintf(said, ui.Count(len(done), "cluster", "clusters"))}}
	if len(done) == 0 {
		m.Summary.Text = "Nothing was done."
	}
	if len(left) > 0 {
		m.Summary.Tone = ui.ToneWarn
		m.Summary.Text += " " + ui.Count(len(left), "was", "were") + " left as "
		m.Summary.Text += map[bool]string{true: "it is.", false: "they are."}[len(left) == 1]
	}
	frame := clusterPage(title, "Clusters", ui.Crumb{Label: title})
	frame.Topics = []string{route.TopicClusters()}
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.BulkDonePage(m, now))
}

// bulkRestart shows what restarting the services of the selected clusters does.
func (s *Server) bulkRestart(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, err := s.readChosen(r, actor)
	if err != nil {
		return err
	}
	m := sharedview.BulkModel{Noun: "cluster", Action: route.ClustersBulk("restart"), Title: "Restart clusters", Back: c.back, Warning: c.warning(),
		Intro:   "Stops and starts all services in the order of their dependencies.",
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Effect"}}}
	for _, item := range c.items {
		row := bulkRow(item)
		view, err := s.Clusters.PreviewUnsaved(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: item.ID})
		switch {
		case err == nil && len(view.Missing) > 0:
			row.Key, row.WhyNot = "", "Its provider asks for credentials; restart it from its own page."
		case err == nil:
			row.Cells = []string{view.Effect()}
		case refused(err):
			row.Key, row.WhyNot = "", loom.AsError(err).Message
		default:
			return err
		}
		m.Rows = append(m.Rows, row)
	}
	if len(c.items) == 0 {
		nothingChosen(&m)
	}
	m.Button = ui.ButtonModel{Label: "Restart clusters", Busy: "Restarting…", Kind: ui.Primary, Submit: true}
	return s.bulkPage(w, r, actor, http.StatusOK, m)
}

// bulkRestartDo restarts the clusters that were shown.
func (s *Server) bulkRestartDo(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	_, c, rows, err := s.readBulk(w, r, actor)
	if err != nil {
		return err
	}
	return s.bulkEach(w, r, actor, "Restart clusters", "The restart of %s has begun.", c, rows, func(item loom.ClusterSummary) error {
		_, err := s.Clusters.Begin(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: item.ID})
		return err
	})
}

// bulkLease asks by how much to prolong the selected leases.
func (s *Server) bulkLease(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, err := s.readChosen(r, actor)
	if err != nil {
		return err
	}
	return s.showBulkLease(w, r, actor, http.StatusOK, c, "7d", "")
}

func (s *Server) showBulkLease(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, c chosen, by, wrong string) error {
	m := sharedview.BulkModel{Noun: "cluster", Action: route.ClustersBulk("lease"), Title: "Extend leases", Back: c.back, Warning: c.warning(),
		Intro:   "Each lease ends later by the time you give, as far as its template allows.",
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Ends"}, {Label: "Maximum"}}}
	see := ui.ViewerOf(r.Context())
	for _, item := range c.items {
		row := bulkRow(item)
		v, err := s.Clusters.Cluster(r.Context(), actor, item.ID)
		if err != nil && !refused(err) {
			return err
		}
		switch {
		case err != nil:
			row.Key, row.WhyNot = "", loom.AsError(err).Message
		case v.Allowed[loom.ChangeLease] != "":
			row.Key, row.WhyNot = "", v.Allowed[loom.ChangeLease]
		case v.Expires.IsZero():
			row.Key, row.WhyNot = "", "It has no expiry."
		default:
			latest := "no expiry"
			if !v.Lease.Latest.IsZero() {
				latest = see.Moment(v.Lease.Latest)
			}
			row.Cells = []string{see.Moment(v.Expires), latest}
		}
		m.Rows = append(m.Rows, row)
	}
	if len(c.items) == 0 {
		nothingChosen(&m)
	}
	f := ui.FieldModel{Name: "by", Label: "Extend by", Value: by, Error: wrong, Width: "s", Help: "How much longer: 7d, 12h, 1d 6h.", Autocomplete: "off"}
	if wrong != "" {
		m.Errors = ui.NewFormErrors("No lease was changed.", []loom.FieldError{{Field: "by", Message: wrong}})
	}
	m.Fields = []ui.FieldModel{f}
	m.Button = ui.ButtonModel{Label: "Extend leases", Busy: "Extending…", Kind: ui.Primary, Submit: true}
	return s.bulkPage(w, r, actor, status, m)
}

// bulkLeaseDo prolongs the leases that were shown.
func (s *Server) bulkLeaseDo(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, c, rows, err := s.readBulk(w, r, actor)
	if err != nil {
		return err
	}
	millis, ok := page.ParseLease(f.Get("by"))
	if !ok || millis <= 0 || millis > (20*365*24*time.Hour).Milliseconds() {
		return s.showBulkLease(w, r, actor, http.StatusUnprocessableEntity, c, f.Get("by"), "Write a time such as 7d, 12h or 1d 6h.")
	}
	return s.bulkEach(w, r, actor, "Extend leases", "The leases of %s end later now.", c, rows, func(item loom.ClusterSummary) error {
		return s.prolong(r, actor, item.ID, time.Duration(millis)*time.Millisecond)
	})
}

// prolong moves the end of a lease by some time, at most to the latest one allowed.
func (s *Server) prolong(r *http.Request, actor loom.Actor, id loom.ClusterID, by time.Duration) error {
	v, err := s.Clusters.Cluster(r.Context(), actor, id)
	if err != nil {
		return err
	}
	if v.Expires.IsZero() {
		return loom.NewError(loom.Conflict, "It has no expiry.")
	}
	end := v.Expires
	if now := s.Now(); end.Before(now) && v.Lease.Rule != "step" {
		end = now
	}
	if end = end.Add(by); !v.Lease.Latest.IsZero() && end.After(v.Lease.Latest) {
		end = v.Lease.Latest
	}
	if !end.After(v.Expires) {
		return loom.NewError(loom.Conflict, "It cannot end later than it does; its template sets the limit.")
	}
	_, err = s.Clusters.ChangeExpiry(r.Context(), actor, id, end)
	return err
}

const (
	// fieldOwner is the name of the field for the new owner.
	fieldOwner = "owner"
	// maxOwners is how many users are offered for choosing; with more, the id is typed.
	maxOwners = 100
)

// ownerAction is what administrators find in the menu of a cluster besides.
func ownerAction(actor loom.Actor, v clusters.ClusterView) []ui.MenuItem {
	if actor.May(loom.Administer, actor.InTenant()) != nil {
		return nil
	}
	return []ui.MenuItem{{Label: "Change owner", Icon: "user", Href: route.Query(route.ClustersBulk("owner"), "id", v.ID.String()), WhyNot: v.Allowed[loom.ChangeEdit]}}
}

// bulkOwner asks who the selected clusters shall belong to.
func (s *Server) bulkOwner(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, err := s.readChosen(r, actor)
	if err != nil {
		return err
	}
	if ids := r.URL.Query()["id"]; !c.all && len(ids) == 1 && len(c.items) == 1 {
		c.back = route.Cluster(c.items[0].ID)
	}
	return s.showBulkOwner(w, r, actor, http.StatusOK, c, "", "")
}

func (s *Server) showBulkOwner(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, c chosen, owner, wrong string) error {
	m := sharedview.BulkModel{Noun: "cluster", Action: route.ClustersBulk("owner"), Title: "Change owner", Back: c.back, Warning: c.warning(),
		Intro:   "The new owner gets full access to the cluster. The current owner loses it, unless an administrator. SSH keys of the current owner stay on the machines until these are replaced.",
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Owner"}, {Label: "Template"}}}
	for _, item := range c.items {
		row := bulkRow(item)
		row.Cells = []string{string(item.Owner.User), item.Template.Name}
		if item.Status == loom.ClusterTerminated {
			row.Key, row.WhyNot = "", "It is terminated; what is left is its history."
		}
		m.Rows = append(m.Rows, row)
	}
	if len(c.items) == 0 {
		nothingChosen(&m)
	}
	f, err := s.ownerField(r, actor, owner)
	if err != nil {
		return err
	}
	if f.Error = wrong; wrong != "" {
		m.Errors = ui.NewFormErrors("No owner was changed.", []loom.FieldError{{Field: fieldOwner, Message: wrong}})
	}
	m.Fields = []ui.FieldModel{f}
	m.Button = ui.ButtonModel{Label: "Change owner", Busy: "Changing…", Kind: ui.Primary, Submit: true}
	return s.bulkPage(w, r, actor, status, m)
}

// ownerField offers the users who may own clusters, or asks for an id where there are
// too many of them.
func (s *Server) ownerField(r *http.Request, actor loom.Actor, owner string) (ui.FieldModel, error) {
	enabled := false
	users, err := s.Accounts.ListUsers(r.Context(), actor, account.UserListInput{Page: loom.Page{Limit: maxOwners}, Disabled: &enabled})
	if err != nil {
		return ui.FieldModel{}, err
	}
	f := ui.FieldModel{Name: fieldOwner, Label: "New owner", Value: owner, Width: "m", Help: "A user of this tenant who is not disabled."}
	if users.Next != "" {
		f.Mono, f.Autocomplete = true, "off"
		f.Help = "The user name of somebody of this tenant who is not disabled."
		return f, nil
	}
	f.Kind = ui.FieldSelect
	f.Options = []ui.Option{{Value: "", Label: "Choose a user"}}
	for _, u := range users.Items {
		label := string(u.ID)
		if u.DisplayName != "" && u.DisplayName != label {
			label = u.DisplayName + " (" + label + ")"
		}
		f.Options = append(f.Options, ui.Option{Value: string(u.ID), Label: label, Selected: string(u.ID) == owner})
	}
	return f, nil
}

// bulkOwnerDo gives the clusters that were shown to somebody else.
func (s *Server) bulkOwnerDo(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, c, rows, err := s.readBulk(w, r, actor)
	if err != nil {
		return err
	}
	owner := strings.TrimSpace(f.Get(fieldOwner))
	if owner == "" {
		return s.showBulkOwner(w, r, actor, http.StatusUnprocessableEntity, c, owner, "Choose who the clusters shall belong to.")
	}
	to := loom.UserID(owner)
	wrong := ""
	done, left, err := c.each(rows, func(item loom.ClusterSummary) error {
		if item.Owner.User == to {
			return loom.NewError(loom.Conflict, "It belongs to %s already.", owner)
		}
		_, err := s.Clusters.Edit(r.Context(), actor, item.ID, clusters.EditInput{Owner: &to})
		if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid && len(e.Fields) > 0 {
			wrong = e.Fields[0].Message
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case wrong != "" && len(done) == 0: // it is the user, and is so for all of them
		return s.showBulkOwner(w, r, actor, http.StatusUnprocessableEntity, c, owner, wrong)
	}
	return s.bulkDone(w, r, actor, "Change owner", "%s changed owner.", c.back, done, left)
}
