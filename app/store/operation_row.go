package store

import (
	"database/sql"
	"time"

	"loom/app/loom"
)

// operationColumns are the columns of operationRow, for statements that lock or
// insert; reads for people count tasks as well (operation_read.go).
const operationColumns = `id, tenant_id, cluster_id, number, action, status, message, requested_by, on_failure,
	aborted, concerns, retries, start IS NOT NULL AS mends, after IS NOT NULL AS undone, created_at, started_at, ended_at`

type operationRow struct {
	ID          int64        `db:"id"`
	TenantID    string       `db:"tenant_id"`
	ClusterID   int64        `db:"cluster_id"`
	Number      int          `db:"number"`
	Action      string       `db:"action"`
	Status      string       `db:"status"`
	Message     string       `db:"message"`
	RequestedBy string       `db:"requested_by"`
	OnFailure   string       `db:"on_failure"`
	Aborted     bool         `db:"aborted"`
	Concerns    int          `db:"concerns"`
	Retries     bool         `db:"retries"`
	Mends       bool         `db:"mends"`
	Undone      bool         `db:"undone"`
	CreatedAt   time.Time    `db:"created_at"`
	StartedAt   sql.NullTime `db:"started_at"`
	EndedAt     sql.NullTime `db:"ended_at"`
}

func (r *operationRow) operation() loom.Operation {
	return loom.Operation{
		Row: loom.OperationID(r.ID), Ref: loom.OperationRef{Cluster: loom.ClusterID(r.ClusterID), Number: r.Number},
		Tenant: loom.TenantID(r.TenantID), Action: loom.ClusterAction(r.Action), Status: loom.OperationStatus(r.Status),
		Message: r.Message, RequestedBy: loom.UserID(r.RequestedBy), Created: r.CreatedAt, Started: r.StartedAt.Time,
		Ended: r.EndedAt.Time, OnFailure: r.OnFailure, Aborted: r.Aborted, Concerns: r.Concerns, Retries: r.Retries, Mends: r.Mends, Undone: r.Undone, Tasks: map[loom.TaskStatus]int{},
	}
}
