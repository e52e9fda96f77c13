package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/httpx"
	"loom/app/loom"
)

// headerOperation names the operation that a request began, where the answer is
// the predecessor's and has no room for it.
const headerOperation = "Loom-Operation"

func tellOperation(w http.ResponseWriter, ref loom.OperationRef) {
	if ref.Number > 0 {
		w.Header().Set(headerOperation, ref.String())
	}
}

// change begins a change of a cluster and names the operation.
func (a *api) change(kind loom.ChangeKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := a.beginChange(w, r, actor, kind)
		if err != nil {
			return err
		}
		return answer(w, r, map[string]string{"operationId": ref.String()})
	}
}

// legacyChange is change with the answer of the predecessor, which named no operation.
func (a *api) legacyChange(kind loom.ChangeKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := a.beginChange(w, r, actor, kind)
		if err != nil {
			return err
		}
		tellOperation(w, ref)
		return done(w)
	}
}

// beginChange begins a change of the cluster in the path, or of what its path names besides:
// a service, or the operation that a retry or a rollback is about.
func (a *api) beginChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.ChangeKind) (loom.OperationRef, error) {
	read := func(w http.ResponseWriter, r *http.Request) (loom.OperationRef, []byte, error) {
		id, body, err := clusterBody(w, r)
		return loom.OperationRef{Cluster: id}, body, err
	}
	if kind == loom.ChangeRollback || kind == loom.ChangeRetry {
		read = operationBody
	}
	of, body, err := read(w, r)
	if err != nil {
		return loom.OperationRef{}, err
	}
	in, err := wire.ReadChange(kind, body)
	if err != nil {
		return loom.OperationRef{}, err
	}
	in.Cluster, in.Change.Operation, in.Service = of.Cluster, of.Number, r.PathValue("service")
	return a.Clusters.Begin(r.Context(), actor, in)
}

func (a *api) syncTemplate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	// The predecessor took no body: only what asks for the impossible is refused.
	if _, err := wire.ReadOperation("", body); err != nil && slices.ContainsFunc(loom.AsError(err).Fields, func(f loom.FieldError) bool { return f.Field == "onFailure" }) {
		return err
	}
	if err := a.Clusters.Sync(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

// control is abort, pause or resume of an operation.
type control func(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error)

func (a *api) controls(verb loom.ChangeKind) control {
	switch verb {
	case loom.ChangePause:
		return a.Operations.Pause
	case loom.ChangeResume:
		return a.Operations.Resume
	}
	return a.Operations.Abort
}

// controlCluster acts on the running operation of a cluster; without one there is
// nothing to do.
func (a *api) controlCluster(verb loom.ChangeKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		id, err := clusterID(r)
		if err != nil {
			return err
		}
		if err := a.Clusters.May(r.Context(), actor, loom.Operate, id); err != nil {
			return err
		}
		cluster, latest, err := a.Clusters.Latest(r.Context(), actor, id)
		if err != nil {
			return err
		}
		if cluster.Status == loom.ClusterPending && latest != nil {
			if _, err := a.controls(verb)(r.Context(), actor, latest.Ref); err != nil {
				return err
			}
		}
		return done(w)
	}
}

// controlOperation acts on the operation in the path and answers it as it is then.
func (a *api) controlOperation(verb loom.ChangeKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := operationRef(r)
		if err != nil {
			return err
		}
		if _, err := a.Clusters.Operation(r.Context(), actor, ref); err != nil {
			return err
		}
		cluster, _, err := a.Clusters.Latest(r.Context(), actor, ref.Cluster)
		if err != nil {
			return err
		}
		if cluster.LatestOperation != ref.Number {
			return loom.NewError(loom.Conflict, "Operation %s has ended; the latest one is %d.", ref, cluster.LatestOperation)
		}
		if _, err := a.controls(verb)(r.Context(), actor, ref); err != nil {
			return err
		}
		op, err := a.Clusters.Operation(r.Context(), actor, ref)
		if err != nil {
			return err
		}
		return answer(w, r, wire.NewOperation(op))
	}
}

// resubmit asks again for an operation that was refused.
func (a *api) resubmit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, body, err := operationBody(w, r)
	if err != nil {
		return err
	}
	fields, err := wire.ReadOperation(loom.Rollback, body)
	if err != nil {
		return err
	}
	begun, err := a.Clusters.Resubmit(r.Context(), actor, ref, fields)
	if err != nil {
		return err
	}
	return answer(w, r, map[string]string{"operationId": begun.String()})
}

// retrying acts on a task that failed and waits for its next try, and answers it as it is
// then.
func (a *api) retrying(act func(*execution.Operations, context.Context, loom.Actor, loom.TaskRef) error) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := taskRef(r)
		if err != nil {
			return err
		}
		if _, err := a.Clusters.Task(r.Context(), actor, ref); err != nil {
			return err
		}
		if err := act(a.Operations, r.Context(), actor, ref); err != nil {
			return err
		}
		return a.showTask(w, r, actor)
	}
}

func operationBody(w http.ResponseWriter, r *http.Request) (loom.OperationRef, []byte, error) {
	ref, err := operationRef(r)
	if err != nil {
		return ref, nil, err
	}
	body, err := readBody(w, r)
	return ref, body, err
}

// skipTask leaves out a task of a paused operation and answers it as it is then. What
// the caller may not know of or do is said before what is wrong with his reason.
func (a *api) skipTask(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := taskRef(r)
	if err != nil {
		return err
	}
	if _, err := a.Clusters.Task(r.Context(), actor, ref); err != nil {
		return err
	}
	if err := actor.May(loom.Override, actor.InTenant()); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	reason, err := wire.ReadSkip(body)
	if err != nil {
		return err
	}
	if err := a.Operations.Skip(r.Context(), actor, ref, reason); err != nil {
		return err
	}
	return a.showTask(w, r, actor)
}

func (a *api) listConfigs(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	all, err := a.Clusters.ConfigVersions(r.Context(), actor, id)
	if err != nil {
		return err
	}
	shown := func(c loom.ConfigRevision) wire.ConfigRevision { return wire.NewConfigRevision(id, c) }
	number := func(c loom.ConfigRevision) string { return byNumber(c.Revision) }
	return answerList(w, r, true, all, shown, order[loom.ConfigRevision]{"-revision", number}, order[loom.ConfigRevision]{"revision", number})
}

func (a *api) showConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	n, ok := numberIn(r, "r")
	if !ok {
		// Whether the cluster is there is not given away by a bad number either.
		if _, _, err := a.Clusters.Latest(r.Context(), actor, id); err != nil {
			return err
		}
		return loom.NewError(loom.NotFound, "Cluster %s has had no config “%.40s”.", id, r.PathValue("r"))
	}
	config, err := a.Clusters.ConfigVersion(r.Context(), actor, id, n)
	if err != nil {
		return err
	}
	return answer(w, r, config)
}

// clusterFilters reads the filters of the list that the predecessor did not have.
// Its clients cannot send them, so that what is wrong with them is said.
func clusterFilters(r *http.Request, in *clusters.ListInput) error {
	q := r.URL.Query()
	var errs []loom.FieldError
	for _, pair := range strings.Split(q.Get("label"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || key == "" {
			errs = append(errs, loom.FieldError{Field: "label", Message: "A label is written as “key=value”, several with commas between them."})
			break
		}
		if in.Labels == nil {
			in.Labels = map[string]string{}
		}
		if other, twice := in.Labels[key]; twice && other != value {
			errs = append(errs, loom.FieldError{Field: "label", Message: "No cluster has two values of one label; name each key once."})
			break
		}
		in.Labels[key] = value
	}
	if text := q.Get("expiresBefore"); text != "" {
		millis, ok := wire.ReadMillis(text)
		if !ok {
			errs = append(errs, loom.FieldError{Field: "expiresBefore", Message: "This is a time in milliseconds since 1970."})
		}
		in.ExpiresBefore = time.UnixMilli(millis)
	}
	return loom.InvalidFields(errs)
}
