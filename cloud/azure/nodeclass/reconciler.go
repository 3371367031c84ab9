// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/image"
)

const (
	// waiting is when claims are looked for again, if no event comes.
	waiting = 10 * time.Minute
	// named is how many claims an event names.
	named = 5
)

// Workers is how many classes are reconciled at once.
const Workers = 10

// ErrForbidden is what Config.DiskEncryptionSet answers when Azure does not let the
// controller read the disk encryption set.
var ErrForbidden = errors.New("access is denied")

// Config is what a Reconciler is made with. Without a comment that says
// otherwise, a field is required.
type Config struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Event publishes an event about the class.
	Event func(class *v1beta1.AKSNodeClass, eventType, reason, message string)

	Subnet            string // ARM ID of the subnet of the cluster
	NodeResourceGroup string
	NetworkPlugin     string
	SharedImages      bool // images are those of the shared galleries

	// Version returns the version of the API server, such as v1.33.4.
	Version func(context.Context) (string, error)
	// Newest returns the newest image of each definition that exists, in order.
	Newest func(context.Context, image.Wanted) ([]v1beta1.NodeImage, error)
	// Window returns the content of the ConfigMap image.WindowConfigMap, nil if there
	// is none.
	Window func(context.Context) (map[string]string, error)
	// CheckSubnet reads a subnet by its ARM ID. The error of one that does not exist
	// is a cloud.NotFoundError.
	CheckSubnet func(ctx context.Context, id string) error
	// DiskEncryptionSet reads the disk encryption set of nodes. Nil means that there
	// is none.
	DiskEncryptionSet func(context.Context) error
	// Unsupported returns what of a class nodes cannot have, as they are made here, "" if
	// nothing. Nil means that they can have everything.
	Unsupported func(*v1beta1.AKSNodeClass) string
	// DNSConflicts reports whether the cluster has something that localDNS would
	// disturb: network policies that it does not know, or another DNS cache. Nil means
	// that it has.
	DNSConflicts func(context.Context) (bool, error)
}

// Reconciler is the controller nodeclass.
type Reconciler struct{ Config }

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclass").
		For(&v1beta1.AKSNodeClass{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(deletions())).
		WithOptions(options).
		Complete(r)
}

// deletions admits only that an object is gone.
func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// classOf names the class that a claim refers to.
func classOf(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*v1.NodeClaim).Spec.NodeClassRef
	if !refers(ref) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ref.Name}}}
}

// refers reports whether the reference is to an AKSNodeClass.
func refers(ref *v1.NodeClassReference) bool {
	return ref != nil && ref.Group == v1beta1.Group && ref.Kind == v1beta1.Kind
}

// Reconcile makes one pass over a class.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &v1beta1.AKSNodeClass{}
	if err := r.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !class.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, class)
	}
	if !controllerutil.ContainsFinalizer(class, v1beta1.TerminationFinalizer) {
		stored := class.DeepCopy()
		controllerutil.AddFinalizer(class, v1beta1.TerminationFinalizer)
		if result, err := written(r.Client.Patch(ctx, class, locked(stored))); err != nil || result != (reconcile.Result{}) {
			return result, err
		}
	}
	stored := class.DeepCopy()
	again, err := r.pass(ctx, class)
	if equality.Semantic.DeepEqual(stored.Status, class.Status) {
		return reconcile.Result{RequeueAfter: again}, err
	}
	conflict, failed := written(r.Client.Status().Patch(ctx, class, locked(stored)))
	if err = errors.Join(err, failed); err != nil {
		return reconcile.Result{}, err
	}
	if conflict != (reconcile.Result{}) {
		return conflict, nil
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// locked is a patch that fails when the class is not as it was read.
func locked(stored *v1beta1.AKSNodeClass) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

// written asks for another pass when the class has changed meanwhile.
func written(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// pass is one look at a class.
type pass struct {
	*Reconciler
	class *v1beta1.AKSNodeClass
	set   *conditions.Set
	now   time.Time
}

// pass runs all steps. It returns when to look again.
func (r *Reconciler) pass(ctx context.Context, class *v1beta1.AKSNodeClass) (time.Duration, error) {
	p := &pass{Reconciler: r, class: class, now: r.Clock.Now()}
	p.set = class.StatusConditions(p.now)
	if err := unreadable.Error(class); err != nil {
		p.set.SetFalse(v1beta1.ValidationSucceededCondition, v1beta1.UnreadableFieldsReason, err.Error())
		return validationInterval, nil
	}
	var least time.Duration
	var errs []error
	for _, step := range []func(*pass, context.Context) (time.Duration, error){
		(*pass).version, (*pass).images, (*pass).subnet, (*pass).validate, (*pass).localDNS,
	} {
		again, err := step(p, ctx)
		errs = append(errs, err)
		if again > 0 && (least == 0 || again < least) {
			least = again
		}
	}
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("AKSNodeClass %s: %w", class.Name, err)
	}
	return least, nil
}

// finalize lets a class go that is deleted, once no claim refers to it any more.
func (r *Reconciler) finalize(ctx context.Context, class *v1beta1.AKSNodeClass) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(class, v1beta1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	claims := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, claims); err != nil {
		return reconcile.Result{}, fmt.Errorf("list NodeClaims: %w", err)
	}
	var names []string
	for i := range claims.Items {
		if ref := claims.Items[i].Spec.NodeClassRef; refers(ref) && ref.Name == class.Name {
			names = append(names, claims.Items[i].Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		r.Event(class, corev1.EventTypeNormal, "WaitingOnNodeClaimTermination", "Waiting on NodeClaim termination for "+some(names))
		return reconcile.Result{RequeueAfter: waiting}, nil
	}
	stored := class.DeepCopy()
	controllerutil.RemoveFinalizer(class, v1beta1.TerminationFinalizer)
	return written(r.Client.Patch(ctx, class, locked(stored)))
}

// some names the first few of the names.
func some(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:named], ", "), len(names)-named)
}
