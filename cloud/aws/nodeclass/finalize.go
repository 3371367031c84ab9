// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
)

const (
	// waiting is when claims are looked for again, if no event comes.
	waiting = 10 * time.Minute
	// named is how many claims an event names.
	named = 5
)

// finalize deletes the AWS resources that were created for a deleted class,
// once no claim refers to the class.
func (r *Reconciler) finalize(ctx context.Context, class *awsv1.EC2NodeClass) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(class, awsv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	claims, err := r.linkedClaims(ctx, class)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(claims) > 0 {
		r.Tell(class, normal, "WaitingOnNodeClaimTermination", "Waiting on NodeClaim termination for "+some(claims))
		return reconcile.Result{RequeueAfter: waiting}, nil
	}
	var errs []error
	if !r.IsolatedVPC {
		errs = append(errs, r.AWS.Profiles.Delete(ctx, class))
	}
	errs = append(errs, r.AWS.Templates.DeleteAll(ctx, class.Name))
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, fmt.Errorf("end node class %s: %w", class.Name, err)
	}
	stored := class.DeepCopy()
	controllerutil.RemoveFinalizer(class, awsv1.TerminationFinalizer)
	result, err := r.written(r.Client.Patch(ctx, class, locked(stored)))
	if err == nil && result == (reconcile.Result{}) {
		r.verdicts.forget(class.UID)
	}
	return result, err
}

// some names the first few of the names.
func some(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:named], ", "), len(names)-named)
}
