package clusters

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/ui"
)

// heavy says whether applying a preview takes the name of the cluster: it deletes
// machines, or cannot be taken back.
func heavy(p clusters.PreviewView) bool {
	return p.Kind.Change().Heavy || p.ByAction[loom.ActionDelete] > 0
}

// harmful says that something does not work, or is not there, after it.
func harmful(p clusters.PreviewView) bool {
	return heavy(p) || p.Kind == loom.ChangeStop || p.ByAction[loom.ActionRemove] > 0
}

// previewParam names the preview whose request fills in a form.
const previewParam = "preview"

// changeURL is the form that the request of a preview came from, filled in as it was.
func changeURL(preview loom.PreviewID, in clusters.PreviewInput) string {
	at, q := "", url.Values{}
	id, c := in.Cluster, in.Change
	switch in.Kind {
	case loom.ChangeExpand, loom.ChangeShrink:
		at = route.ClusterScale(id)
		if c.Machines > 0 {
			q.Set("numMachines", strconv.Itoa(c.Machines))
		}
		for _, n := range c.Nodes {
			q.Add("leave", string(n))
		}
	case loom.ChangeAddServices:
		at, q["services"] = route.ClusterServices(id, "add"), in.Services
	case loom.ChangeRemoveServices:
		at, q["services"] = route.ClusterServices(id, "remove"), c.Services
	case loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart:
		at = route.ClusterServices(id, string(in.Kind))
		if in.Service != "" {
			at = route.ClusterService(id, in.Service, string(in.Kind))
		}
	case loom.ChangeUpdate, loom.ChangeResize:
		at, q["services"] = route.ClusterVerb(id, string(in.Kind)), c.Services
		for _, e := range c.Entries {
			q.Add("entries", entryValue(e.Kind, e.Name))
		}
		q.Set("hardwaretype", c.HardwareType)
		if c.Batch > 0 {
			q.Set("batch", strconv.Itoa(c.Batch))
		}
		if c.MinHealthy != nil {
			q.Set("minHealthy", strconv.Itoa(*c.MinHealthy))
		}
	case loom.ChangeRepair:
		at = route.ClusterRepairBy(id, c.How, c.Services, c.Nodes...)
	case loom.ChangeRollback, loom.ChangeRetry:
		at = route.OperationVerb(loom.OperationRef{Cluster: id, Number: c.Operation}, string(in.Kind))
		for _, n := range c.Skip {
			q.Add("skip", strconv.Itoa(n))
		}
		q.Set("reason", c.Reason)
		if in.Kind == loom.ChangeRetry {
			q["services"], q["removeServices"] = c.Services, c.RemoveServices
		}
		if c.ConfigPatch != nil { // a config does not go into an address
			q.Set(previewParam, string(preview))
		}
	case loom.ChangeSync:
		at = route.ClusterVerb(id, string(loom.ChangeUpdate))
	case loom.ChangeConfigure:
		switch {
		case in.Configure == nil:
			return ""
		case in.Configure.Revision != nil:
			at = route.ConfigRestore(id, *in.Configure.Revision, in.Configure.Restart)
		default: // a config does not go into an address
			at = route.ClusterVerb(id, "reconfigure")
			q.Set(previewParam, string(preview))
		}
	default:
		return ""
	}
	q.Set("onFailure", c.OnFailure)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			pairs = append(pairs, name, value)
		}
	}
	return route.Query(at, pairs...)
}

// previewMake works out what a form asks for and goes to the page that shows it.
// The buttons of a form that only change it come here as well, so that they work
// without scripts.
func (s *Server) previewMake(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	kind := loom.ChangeKind(v.Get("kind"))
	if kind == loom.ChangeCreate || kind == "" {
		return s.previewCreate(w, r, actor, v)
	}
	return s.previewChange(w, r, actor, v)
}

func (s *Server) previewCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor, v url.Values) error {
	f := readCreateForm(v)
	if f.Change != "" {
		if err := f.apply(f.Change); err != nil {
			return err
		}
	}
	if f.Do == resetConfig {
		f.Forget(form.At("config"))
		f.settings.shown = nil
	}
	st, err := s.settle(r.Context(), actor, f)
	if err != nil {
		return err
	}
	if f.Do == saveDraft {
		s.keepCreateDraft(r, actor, st, v)
		return s.Say(w, r, route.Clusters(), httpx.Flash{Tone: "ok", Text: "Draft saved for 7 days, without secrets.", Link: "Continue", URL: route.ClusterNew()})
	}
	if f.Change != "" || f.Do != "" {
		return s.showForm(w, r, actor, http.StatusOK, st, ui.FormErrors{}, nil)
	}
	in, errs := st.form.input(st.facts)
	if errs = replaceFields(st.wrongSize(), errs); len(errs) > 0 {
		// Said together with what else is wrong, so that nobody corrects in rounds.
		result, err := s.Clusters.Check(r.Context(), actor, in)
		if err != nil {
			return err
		}
		return s.refuseForm(w, r, actor, st, &loom.Error{Kind: loom.Invalid, Fields: replaceFields(errs, result.Fields)})
	}
	p, err := s.Clusters.Preview(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
	if err != nil {
		return s.refuseForm(w, r, actor, st, err)
	}
	return httpx.SeeOther(w, r, route.Preview(p.ID))
}

// refuseForm shows the form again with what is wrong, as far as that can be put
// right there.
func (s *Server) refuseForm(w http.ResponseWriter, r *http.Request, actor loom.Actor, st *settled, err error) error {
	e := loom.AsError(err)
	fields := e.Fields
	switch e.Kind {
	case loom.Invalid, loom.Unsolvable:
	case loom.NotFound:
		if len(fields) == 0 {
			return err
		}
	case loom.Exhausted, loom.Unavailable:
	default:
		return err
	}
	if len(fields) == 0 {
		fields = []loom.FieldError{{Message: e.Message}}
	}
	status := httpx.PageStatus(e.Kind)
	if e.Kind == loom.NotFound {
		status = http.StatusUnprocessableEntity
	}
	return s.showForm(w, r, actor, status, st, settingErrors(fields, st.settings(), st.fieldKeys()), e.Unsat)
}

// fieldLabels are the names of the form's fields for people.
var fieldLabels = map[string]string{
	"clusterTemplate": "Template", "name": "Name", "numMachines": "Nodes", "description": "Description", "provider": "Provider",
	"hardwaretype": "Hardware type", "imagetype": "Image type", "services": "Services", "initialLeaseDuration": "Lease",
	"dnsSuffix": "DNS suffix", "onFailure": "If the operation fails", "config": "Config", "nodes": "Nodes", "skip": "Tasks to skip",
	"reason": "Reason", "batch": "Nodes at a time", "minHealthy": "Nodes that stay up",
}

// fieldOrder is the order of the fields in the form.
var fieldOrder = []string{
	"clusterTemplate", "name", "numMachines", "description", "provider", "hardwaretype", "imagetype", "services",
	"initialLeaseDuration", "dnsSuffix", "nodes", "skip", "reason", "batch", "minHealthy", "onFailure", "config",
}

// formErrors is the summary above a form.
func formErrors(fields []loom.FieldError) ui.FormErrors { return settingErrors(fields, nil, nil) }

// settingErrors is the summary above a form with fields for the settings that have the keys.
func settingErrors(fields []loom.FieldError, settings []loom.ClusterParameter, shown []string) ui.FormErrors {
	errs := ui.NewFormErrors("There is no preview yet.", configFields(fields, shown))
	labels := maps.Clone(fieldLabels)
	for i := range settings {
		labels[settingPrefix+settings[i].Key] = settings[i].Name()
	}
	for i := range errs.Items {
		errs.Items[i].Label = labels[errs.Items[i].Field]
	}
	order := slices.Clone(fieldOrder)
	for _, key := range shown {
		order = append(order, settingPrefix+key)
	}
	place := func(e ui.FormError) int { return slices.Index(order, e.Field) }
	slices.SortStableFunc(errs.Items, func(a, b ui.FormError) int { return place(a) - place(b) })
	return errs
}
