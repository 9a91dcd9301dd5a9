/* Echoes: a note for every event, an allow for every question. Reads hello_ack and all else without answering. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 20];

static void put(const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(1, text, size);
        if (written <= 0) _exit(0);
        text += written;
        size -= (size_t)written;
    }
}

static void answer(const char *line) {
    char out[256];
    if (strstr(line, "\"event_intercept\"")) {
        const char *at = strstr(line, "\"id\":\"");
        char id[64] = "";
        if (at) sscanf(at + 6, "%63[^\"]", id);
        int size = snprintf(out, sizeof out, "{\"type\":\"event_intercept_response\",\"id\":\"%s\"}\n", id);
        put(out, (size_t)size);
    } else if (strstr(line, "\"type\":\"event\"") && strstr(line, "\"ping\"")) {
        const char *echo = "{\"type\":\"notify\",\"level\":\"info\",\"message\":\"pong\"}\n";
        put(echo, strlen(echo));
    } else if (strstr(line, "\"shutdown\"")) {
        _exit(0);
    }
}

int main(void) {
    const char *hello =
        "{\"type\":\"hello\",\"name\":\"echo\"}\n"
        "{\"type\":\"subscribe\",\"events\":[\"turn_start\"],\"intercept\":[\"tool_call\"]}\n"
        "{\"type\":\"ready\"}\n";
    size_t length = 0;
    put(hello, strlen(hello));
    for (;;) {
        ssize_t got = read(0, buffer + length, sizeof buffer - 1 - length);
        if (got <= 0) return 0;
        length += (size_t)got;
        char *start = buffer, *end;
        while ((end = memchr(start, '\n', (size_t)(buffer + length - start)))) {
            *end = 0;
            answer(start);
            start = end + 1;
        }
        length = (size_t)(buffer + length - start);
        memmove(buffer, start, length);
    }
}
