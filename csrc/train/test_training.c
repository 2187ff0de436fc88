/* Tests of the training passes with threads: any number of them gives the same bits, and all stay in their memory. What
 * the passes compute is tested from Python. With the thread sanitizer:
 *
 *     meson setup build -Db_sanitize=thread -Db_lundef=false && meson test -C build training */
#include "loss.h"
#include "testing.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#endif

enum { MOST_THREADS = 3, N_ROWS = 60, N_COLUMNS = 6, DEGREE = 3, BLOCK = 16, MOST_WIDTH = 4 };

typedef enum { DUAL, PEGASOS, ADAGRAD, N_SOLVERS } solver;

/* ---- a pass of several threads ---- */

typedef struct {
    const tk_training *training;
    solver solver;
    void *state;
    int32_t me;
} a_call;

static void run_pass(const a_call *call)
{
    const int64_t n = N_ROWS;
    if (call->solver == DUAL)
        tk_dual_pass(call->training, 0, n, call->state, call->me);
    else if (call->solver == PEGASOS)
        tk_pegasos_pass(call->training, 0, n, call->state, call->me);
    else
        tk_adagrad_pass(call->training, 0, n, call->state, call->me);
}

#if defined(_WIN32)
static DWORD WINAPI thread(void *call)
{
    run_pass(call);
    return 0;
}

static void run_in_threads(a_call *calls, int n)
{
    HANDLE threads[MOST_THREADS];
    for (int i = 0; i < n; i++)
        if (!(threads[i] = CreateThread(NULL, 0, thread, &calls[i], 0, NULL)))
            exit(2);
    for (int i = 0; i < n; i++)
        WaitForSingleObject(threads[i], INFINITE);
}
#else
static void *thread(void *call)
{
    run_pass(call);
    return NULL;
}

static void run_in_threads(a_call *calls, int n)
{
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, thread, &calls[i]))
            exit(2);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}
#endif

/* ---- a problem ---- */

typedef struct {
    const tk_loss *loss;
    int32_t n_outputs, width, n_parts;
    const feature_map *maps;
    const tk_rows *rows;
    int64_t n_slots;
} a_problem;

typedef struct {
    array y, target, weight;
    tk_targets c;
} some_targets;

/* The same ones at each call. */
static some_targets make_targets(const a_problem *p)
{
    const int numbers = p->loss->of == TK_NUMBERS;
    const int64_t n = N_ROWS * p->n_outputs;
    some_targets t = {
        .y = new_array(numbers ? 0 : n), .target = new_array(numbers ? n * 8 : 0), .weight = new_array(N_ROWS * 8)};
    random_state = 1;
    for (int64_t i = 0; i < N_ROWS; i++) {
        const int32_t class = (int32_t)((uniform() + 1) / 2 * p->n_outputs);
        ((double *)t.weight.data)[i] = 1.25 + uniform();
        for (int32_t k = 0; k < p->n_outputs; k++)
            if (numbers)
                ((double *)t.target.data)[i * p->n_outputs + k] = uniform();
            else
                ((int8_t *)t.y.data)[i * p->n_outputs + k] =
                    (p->loss->of == TK_CLASSES ? k == class : uniform() >= 0) ? 1 : -1;
    }
    t.c = (tk_targets){.loss = p->loss, .epsilon = numbers ? 0.1 : 0, .n_outputs = p->n_outputs};
    t.c.y = numbers ? NULL : (const int8_t *)t.y.data;
    t.c.target = numbers ? (const double *)t.target.data : NULL;
    t.c.weight = (const double *)t.weight.data;
    return t;
}

/* All that two passes of a solver have written, in arrays; n threads. */
enum { TABLE, MORE_TABLES, ALPHA, MARGIN, OF_OUTPUTS, N_RESULTS };

static void train(const a_problem *p, solver solver, int n, array *results)
{
    const int64_t entries = p->n_slots * p->width, per_row = N_ROWS * p->n_outputs;
    const tk_real real = p->rows->real;
    some_targets targets = make_targets(p);
    tk_team team = {.n = n};
    int32_t shares[MOST_THREADS + 1], parts[] = {0, p->n_parts == 1 ? N_COLUMNS + 1 : 3, N_COLUMNS + 1};
    const array scratch = new_zeros(tk_training_scratch_bytes(p->rows, BLOCK, p->n_outputs, p->width, p->n_parts, n));
    for (int i = 0; i <= n; i++)
        shares[i] = (N_COLUMNS + 1) * i / n;
    results[TABLE] = filled_reals(real, entries, 0);
    results[MORE_TABLES] = filled_reals(real, entries, solver == ADAGRAD ? 0.25 : 0);
    results[ALPHA] = new_zeros(per_row * 8);
    results[MARGIN] = new_zeros(per_row * 8);
    results[OF_OUTPUTS] = new_zeros(3 * MOST_WIDTH * 8);
    double *alpha = (double *)results[ALPHA].data, *margin = (double *)results[MARGIN].data;
    double *norm2 = (double *)results[OF_OUTPUTS].data, *scale = norm2 + MOST_WIDTH, *shift = scale + MOST_WIDTH;
    for (int k = 0; k < MOST_WIDTH; k++)
        scale[k] = 1;
    const int bare = solver == DUAL;
    const tk_training training = {.rows = p->rows,
                                  .margin = &p->maps[bare ? BARE : FEATURES].c,
                                  .update = &p->maps[bare ? UPDATE : FEATURES].c,
                                  .w = {results[TABLE].data, p->width},
                                  .targets = &targets.c,
                                  .block = BLOCK,
                                  .team = n == 1 ? NULL : &team,
                                  .shares = shares,
                                  .n_parts = p->n_parts,
                                  .parts = parts,
                                  .scratch = scratch.data};
    tk_dual dual = {.C = 5, .alpha = alpha, .margin = margin, .norm2 = norm2, .sweeps = 3};
    tk_pegasos pegasos = {.lambda = 2,
                          .share = 0.1,
                          .scale = scale,
                          .alpha = alpha,
                          .norm2 = norm2,
                          .average = results[MORE_TABLES].data,
                          .shift = shift};
    tk_adaptive adagrad = {results[TABLE].data, results[MORE_TABLES].data, p->width, 0.3, NULL};
    void *states[] = {&dual, &pegasos, &adagrad};
    a_call calls[MOST_THREADS];
    for (int i = 0; i < n; i++)
        calls[i] = (a_call){&training, solver, states[solver], i};
    for (int pass = 0; pass < 2; pass++)
        run_in_threads(calls, n);
    free_array(scratch, "training stays in its scratch");
    free_array(targets.y, "labels are left alone");
    free_array(targets.target, "numbers are left alone");
    free_array(targets.weight, "weights are left alone");
}

static void test_threads(const a_problem *p, solver solver)
{
    array alone[N_RESULTS], together[N_RESULTS];
    int moved = 0;
    train(p, solver, 1, alone);
    for (int64_t i = 0; i < alone[TABLE].bytes; i++)
        moved |= alone[TABLE].data[i];
    check(moved, "training trains");
    for (int n = 2; n <= MOST_THREADS; n++) {
        train(p, solver, n, together);
        for (int i = 0; i < N_RESULTS; i++) {
            check(memcmp(alone[i].data, together[i].data, (size_t)alone[i].bytes) == 0,
                  "several threads, the same bits");
            free_array(together[i], "several threads stay in their arrays");
        }
    }
    for (int i = 0; i < N_RESULTS; i++)
        free_array(alone[i], "a pass stays in its arrays");
}

static void test_losses(a_problem *p, const char *rows)
{
    static const char *const solvers[] = {"dual", "Pegasos", "AdaGrad"};
    for (int loss = 0; loss < tk_n_losses(); loss++)
        for (int outputs = 1; outputs <= 3; outputs += 2)
            for (int s = 0; s < N_SOLVERS; s++) {
                p->loss = tk_loss_at(loss);
                p->n_outputs = p->loss->of == TK_CLASSES ? 3 : outputs;
                p->width = p->n_outputs == 1 ? 1 : MOST_WIDTH;
                p->n_parts = 1 + (outputs > 1);
                snprintf(where, sizeof where, "%s, %s, %s, %d outputs", rows, p->loss->name, solvers[s], p->n_outputs);
                test_threads(p, (solver)s);
            }
}

int main(void)
{
    const int64_t n_slots = choose(N_COLUMNS + DEGREE, DEGREE);
    static feature_map maps[N_METRICS];
    array order = new_array(N_ROWS * 4);
    tk_init();
    for (int m = 0; m < N_METRICS; m++)
        make_map(&maps[m], DEGREE, N_COLUMNS, GAUSSIAN, (metric)m);
    for (int32_t i = 0; i < N_ROWS; i++)
        ((int32_t *)order.data)[i] = (7 * i + 2) % N_ROWS;
    const matrix x = make_matrix(N_ROWS, N_COLUMNS, 0);
    for (int kind = 0; kind < 4; kind++) {
        const int dense = kind & 1;
        stored_rows rows = store(&x, kind >> 1 ? TK_FLOAT64 : TK_FLOAT32, !dense, dense);
        rows.c.order = (const int32_t *)order.data;
        a_problem p = {.maps = maps, .rows = &rows.c, .n_slots = n_slots};
        test_losses(&p, dense ? "dense rows" : "sparse rows");
        free_rows(rows);
    }
    free_array(order, "the order is left alone");
    for (int m = 0; m < N_METRICS; m++)
        free_array(maps[m].ranks, "ranks are left alone");
    free(x.x);
    free(x.count);
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
