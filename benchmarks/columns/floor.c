/* The floor: one blocking loop over epoll, one write a line, which counts lines and decodes nothing. No host can be faster with so
 * many pipes. It takes the orders that `worker.py` describes and sends what `payloads.py` does.
 *
 *     floor FOLDER PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN_MAX = 1024, BURST_AT_ONCE = 50, BURST_BEHIND = 100 };

extern char **environ;
static char **program;
static int program_length;
static int children, poller, input[CHILDREN_MAX], output[CHILDREN_MAX];
static pid_t pids[CHILDREN_MAX];
static long sequence;
static char buffer[1 << 16];

static void check(int is_right, const char *what) {
    if (is_right) return;
    perror(what);
    exit(1);
}

static long long now(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void put(int fd, const char *text, int size) { check(write(fd, text, (size_t)size) == size, "write"); }

/* Read until at most so many of the lines are outstanding; returns how many are. */
static long wait_lines(long lines, long at_most) {
    struct epoll_event ready[256];
    while (lines > at_most) {
        int count = epoll_wait(poller, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            ssize_t got = read(ready[i].data.fd, buffer, sizeof buffer);
            check(got > 0, "an extension ended");
            for (char *at = buffer; (at = memchr(at, '\n', (size_t)(buffer + got - at))); at++) lines--;
        }
    }
    return lines;
}

static void spawn(int number) {
    int in[2], out[2];
    char suffix[16], *arguments[64];
    check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    snprintf(suffix, sizeof suffix, "-%03d", number);
    for (int i = 0; i < program_length; i++) arguments[i] = program[i];
    arguments[program_length] = suffix;
    arguments[program_length + 1] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    check(posix_spawn(&pids[number], program[0], &actions, NULL, arguments, environ) == 0, program[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input[number] = in[1];
    output[number] = out[0];
}

static void start(int n) {
    check(n <= CHILDREN_MAX, "too many extensions");
    children = n;
    poller = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < n; i++) spawn(i);
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = output[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, output[i], &event);
        size_t length = 0;
        do {
            ssize_t got = read(output[i], buffer + length, sizeof buffer - 1 - length);
            check(got > 0, "an extension ended before it was ready");
            length += (size_t)got;
            buffer[length] = 0;
        } while (!strstr(buffer, "\"ready\""));
    }
}

static void stop(void) {
    const char *line = "{\"type\":\"shutdown\"}\n";
    for (int i = 0; i < children; i++) put(input[i], line, (int)strlen(line));
    for (int i = 0; i < children; i++) {
        waitpid(pids[i], NULL, 0);
        close(input[i]);
        close(output[i]);
    }
    close(poller);
}

static void send_event(void) {
    char line[256];
    int size = snprintf(line, sizeof line,
                        "{\"type\":\"event\",\"event\":\"turn_start\",\"session_id\":\"bench\",\"cwd\":\"/\",\"sequence\":%ld,"
                        "\"step\":1,\"ping\":1}\n",
                        ++sequence);
    for (int i = 0; i < children; i++) put(input[i], line, size);
}

static void ask(int child, const char *type, const char *rest) {
    char line[256];
    int size = snprintf(line, sizeof line, "{\"type\":\"%s\",\"id\":\"%ld\",%s}\n", type, ++sequence, rest);
    put(input[child], line, size);
    wait_lines(1, 0);
}

static void operate(const char *row) {
    if (!strcmp(row, "event")) {
        send_event();
        wait_lines(children, 0);
    } else if (!strcmp(row, "intercept")) {
        for (int i = 0; i < children; i++)
            ask(i, "event_intercept",
                "\"event\":\"tool_call\",\"tool_name\":\"bash\",\"tool_args\":{\"command\":\"ls\"}");
    } else if (!strcmp(row, "command")) {
        ask(0, "command_invoked", "\"name\":\"echo-000\",\"args\":\"a b\"");
    } else if (!strcmp(row, "tool")) {
        ask(0, "tool_call", "\"name\":\"echo-000\",\"args\":{\"command\":\"ls\"}");
    } else {
        fprintf(stderr, "floor: no such row: %s\n", row);
        exit(1);
    }
}

static void burst(long events) {
    long left = 0;
    for (long begun = 0; begun < events; begun += BURST_AT_ONCE) {
        long count = events - begun < BURST_AT_ONCE ? events - begun : BURST_AT_ONCE;
        left += count * children;
        for (long i = 0; i < count; i++) send_event();
        left = wait_lines(left, (long)BURST_BEHIND * children);
    }
    wait_lines(left, 0);
}

int main(int count, char **arguments) {
    char order[64];
    int number;
    check(count > 2 && count < 60, "usage: floor FOLDER PROGRAM [ARGUMENT...]");
    program = arguments + 2;
    program_length = count - 2;
    while (scanf("%63s %d", order, &number) == 2) {
        long long busy = now(CLOCK_PROCESS_CPUTIME_ID), begun = now(CLOCK_MONOTONIC);
        if (!strcmp(order, "start")) {
            start(number);
        } else if (!strcmp(order, "stop")) {
            stop();
        } else if (!strcmp(order, "burst")) {
            burst(number);
        } else {
            int warm_up = number / 5 > 2 ? number / 5 : 2; /* do not count, as in worker.py */
            for (int i = 0; i < warm_up; i++) operate(order);
            busy = now(CLOCK_PROCESS_CPUTIME_ID);
            printf("{\"ns\": [");
            for (int i = 0; i < number; i++) {
                begun = now(CLOCK_MONOTONIC);
                operate(order);
                printf("%s%lld", i ? ", " : "", now(CLOCK_MONOTONIC) - begun);
            }
            printf("], \"cpu_ns\": %lld}\n", now(CLOCK_PROCESS_CPUTIME_ID) - busy);
            fflush(stdout);
            continue;
        }
        printf("{\"ns\": [%lld], \"cpu_ns\": %lld}\n", now(CLOCK_MONOTONIC) - begun, now(CLOCK_PROCESS_CPUTIME_ID) - busy);
        fflush(stdout);
    }
    return 0;
}
