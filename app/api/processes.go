package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/app/processes"
)

func byProcessID(p processes.Process) string { return string(p.ID) }

func (a *api) listProvisioners(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	all, err := a.Processes.List(r.Context(), actor, loom.ProcessProvisioner)
	if err != nil {
		return err
	}
	return answerList(w, r, false, all, wire.NewProvisioner, order[processes.Process]{"id", byProcessID}, order[processes.Process]{"-id", byProcessID})
}

func (a *api) showProvisioner(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := a.Processes.One(r.Context(), actor, loom.ProcessProvisioner, loom.ProcessID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProvisioner(p))
}

func (a *api) listProcesses(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	kinds, err := oneOf(r, "kind", []string{loom.ProcessWeb, loom.ProcessScheduler, loom.ProcessProvisioner})
	if err != nil {
		return err
	}
	all, err := a.Processes.List(r.Context(), actor, "")
	if err != nil {
		return err
	}
	var found []processes.Process
	for _, p := range all {
		if holds(kinds, p.Kind) {
			found = append(found, p)
		}
	}
	return answerList(w, r, true, found, wire.NewProcess, order[processes.Process]{"id", byProcessID}, order[processes.Process]{"-id", byProcessID})
}

func (a *api) drainProcess(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := a.Processes.Drain(r.Context(), actor, loom.ProcessID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProcess(p))
}

func (a *api) resumeProcess(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := a.Processes.Resume(r.Context(), actor, loom.ProcessID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProcess(p))
}

func (a *api) queueMetrics(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	counts, err := a.Processes.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewQueues(counts))
}

// usageMetrics takes the first value of each parameter, as the predecessor did.
func (a *api) usageMetrics(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query()
	in := processes.UsageInput{
		Tenant: q.Get("tenant"), User: loom.UserID(q.Get("user")), Template: q.Get("clustertemplate"),
		GroupBy: q.Get("groupby"), TimeUnit: q.Get("timeunit"), Split: q.Get("split"),
	}
	var errs []loom.FieldError
	seconds := func(name string) *int64 {
		if q.Get(name) == "" {
			return nil
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil {
			errs = append(errs, loom.FieldError{Field: name, Message: "This is a time in seconds since 1970, a whole number."})
		}
		return &n
	}
	in.Start, in.End = seconds("start"), seconds("end")
	if text := q.Get("cluster"); text != "" {
		var ok bool
		if in.Cluster, ok = loom.ParseClusterID(text); !ok {
			errs = append(errs, loom.FieldError{Field: "cluster", Message: "This is the id of a cluster, such as “00000042”."})
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return err
	}
	used, err := a.Processes.Usage(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewUsage(used, in.Split != ""))
}
